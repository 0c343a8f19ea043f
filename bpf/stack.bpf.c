// SPDX-License-Identifier: GPL-2.0-only
/*
 * stack.bpf.c - which code makes memory grow (--stacks): samples of user stacks at growth of RSS.
 *
 * rss.bpf.c says how much memory has grown at an event, and this program runs right after it on the
 * same CPU. Each CPU takes a sample after a random number of pages, and a sample has the weight of
 * all that grew there since the one before. So weights add up to the growth, whatever the gaps are.
 * As samples come, the gaps become longer, so that a run has some thousands of them.
 *
 * Growth is counted in a word that also has an epoch, and each checkpoint begins the next one: a
 * page belongs to the epoch that it was counted in, and a phase has exactly the growth between its
 * two words. Of a sample whose pages came in several epochs, `late` is the part of the last.
 * Example, 16 pages a gap: 10 pages, a checkpoint, and 6 more: weight 16, late 6. A phase that
 * began at that checkpoint has these 6 from the sample, and the 10 are nobody's in the one before.
 *
 * While no samples are taken, growth is counted all the same. What a CPU had for its next sample is
 * dropped: it stays without one, and no sample has what came in between.
 */
#include "stack_sample.bpf.h"

struct wire_growth growth;

/* Returns how many pages come before the next sample. */
static __always_inline u64 choose_gap(u64 samples)
{
	return random_gap(wire_stack_mean(config.stack_pages, samples, WIRE_STACK_LEVEL));
}

static __always_inline void take_sample(struct growing *g, struct task_struct *task,
					const struct mm_rss *m, int member)
{
	u32 end, n = walk_python(task, m->key, program_of(task, m), PYTHON_OF_GROWTH, &end);
	struct wire_stack *s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);

	g->left = choose_gap(atomic_add(&growth.samples, 1));
	if (!s) {
		atomic_add(&growth.lost, 1);
	} else {
		fill_stack(s, task, m, PYTHON_OF_GROWTH, n, end);
		s->kind = kind_of_pages(member);
		s->weight = g->weight;
		s->late = g->late;
		s->first_epoch = g->first_epoch;
		s->epoch = g->epoch;
		s->since_ns = 0;
		submit_sample(s);
	}
	g->weight = 0;
}

static __always_inline void add_growth(struct growing *g, u64 pages, u64 epoch)
{
	if (!g->weight)
		g->first_epoch = epoch;
	if (!g->weight || g->epoch != epoch)
		g->late = 0;
	g->epoch = epoch;
	g->weight += pages;
	g->late += pages;
}

SEC("?tp_btf/rss_stat")
int BPF_PROG(sample_growth, struct mm_struct *mm, int member)
{
	struct growing *g = here(&growing);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct mm_rss *m;
	u64 pages, epoch;

	if (!g || !g->change)
		return 0;
	pages = g->change;
	g->change = 0;
	epoch = atomic_add(&growth.grown, pages) >> WIRE_GROWTH_BITS;
	if (growth.from_ns == WIRE_NO_SAMPLES) {
		g->weight = 0;
		return 0;
	}
	m = find_mm((u64)mm);
	if (!m || BPF_CORE_READ(task, mm) != mm || BPF_CORE_READ(task, flags) & PF_KTHREAD) {
		atomic_add(&growth.elsewhere, pages);
		return 0;
	}
	add_growth(g, pages, epoch);
	if (g->left > pages)
		g->left -= pages;
	else
		take_sample(g, task, m, member);
	return 0;
}
