// SPDX-License-Identifier: GPL-2.0-only
/*
 * stack.bpf.c - which code makes memory grow, and which gives it back (--stacks): samples of user
 * stacks at growth of RSS, and as it falls.
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
 *
 * What a thread gives back (munmap(), madvise(), brk()) is sampled alike, with a word and gaps of
 * its own. One call to the kernel gives back any number of pages, in an event for each 512 or so:
 * as long as it goes on, its sample is followed by short records that have the same stack. Example:
 * munmap() of 1 GiB is 512 events, a sample and 511 records at most, and not 19 MiB of copies of
 * one stack. What goes back as a process ends, or executes another program, is added up, and has no
 * stack. Nor has what the kernel takes as it needs memory, whichever thread does it.
 */
#include "stack_sample.bpf.h"
#include "syscalls.bpf.h"

enum {
	PF_MEMALLOC = 0x800,	 /* the kernel looks for memory that it can take */
	SAME_CALL_NS = 10000000, /* events of a call come sooner than that after each other */
};

struct wire_growth growth;

/* Returns how many pages come before the next sample. */
static __always_inline u64 choose_gap(u64 samples)
{
	return random_gap(wire_stack_mean(config.stack_pages, samples, WIRE_STACK_LEVEL));
}

static __always_inline void add_pages(struct unsampled *u, u64 pages, u64 epoch)
{
	if (!u->weight)
		u->first_epoch = epoch;
	if (!u->weight || u->epoch != epoch)
		u->late = 0;
	u->epoch = epoch;
	u->weight += pages;
	u->late += pages;
}

static __always_inline bool is_due(struct unsampled *u, u64 pages)
{
	const bool due = u->left <= pages;

	if (!due)
		u->left -= pages;
	return due;
}

static __always_inline void fill_pages(struct wire_stack *s, const struct unsampled *u, int member)
{
	s->kind = kind_of_pages(member);
	s->weight = u->weight;
	s->late = u->late;
	s->first_epoch = u->first_epoch;
	s->epoch = u->epoch;
	s->since_ns = 0;
}

/* Returns when it was taken; 0: there is no room. */
static __always_inline u64 take_sample(const struct unsampled *u, struct task_struct *task,
				       const struct mm_rss *m, int member, u32 back)
{
	u32 end, n = walk_python(task, m->key, program_of(task, m), PYTHON_OF_GROWTH, &end);
	struct wire_stack *s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);
	u64 time_ns;

	if (!s)
		return 0;
	fill_stack(s, task, m, PYTHON_OF_GROWTH, n, end);
	fill_pages(s, u, member);
	s->back = back;
	time_ns = s->time_ns;
	submit_sample(s);
	return time_ns;
}

static __always_inline void grow(struct growing *g, struct task_struct *task,
				 const struct mm_rss *m, int member, u64 pages, u64 epoch)
{
	struct unsampled *u = &g->grown;

	g->giving.call = 0;
	add_pages(u, pages, epoch);
	if (!is_due(u, pages))
		return;
	u->left = choose_gap(atomic_add(&growth.samples, 1));
	if (!take_sample(u, task, m, member, 0))
		atomic_add(&growth.lost, 1);
	u->weight = 0;
}

/*
 * Tells calls to the kernel apart: by the thread and all its registers, which have the call, its
 * arguments, and where the thread goes on. Two calls that have the same give back the same range:
 * the range has grown meanwhile.
 */
static __always_inline u64 call_of(struct giving *giving, struct task_struct *task)
{
	u64 digest = tid_of(task);

	if (!copy_registers(giving->regs, task))
		return 0;
	for (u32 i = 0; i < WIRE_STACK_REGS; i++)
		digest = (digest ^ giving->regs[i]) * 0x9e3779b97f4a7c15ULL;
	return digest | 1;
}

/* Returns false if there is no room. */
static __always_inline bool sample_again(const struct unsampled *u, const struct giving *giving,
					 struct task_struct *task, const struct mm_rss *m,
					 int member)
{
	struct wire_stack *s = bpf_ringbuf_reserve(&stacks, offsetof(struct wire_stack, python), 0);

	if (!s)
		return false;
	fill_sample(s, task, m);
	fill_pages(s, u, member);
	s->back = 1;
	s->since_ns = giving->sample_ns;
	s->base = s->len = s->python_end = s->n_python = 0;
	submit_sample(s);
	return true;
}

static __always_inline void give_back_pages(struct growing *g, struct task_struct *task,
					    const struct mm_rss *m, int member, u64 pages,
					    u64 epoch)
{
	struct giving *giving = &g->giving;
	struct unsampled *u = &g->back;
	u64 call, now;

	add_pages(u, pages, epoch);
	if (!is_due(u, pages))
		return;
	u->left = choose_gap(growth.back_samples + growth.back_again);
	call = call_of(giving, task);
	now = bpf_ktime_get_ns();
	if (call && call == giving->call && now < giving->last_ns + SAME_CALL_NS &&
	    sample_again(u, giving, task, m, member)) {
		atomic_add(&growth.back_again, 1);
	} else {
		atomic_add(&growth.back_samples, 1);
		giving->sample_ns = take_sample(u, task, m, member, 1);
		giving->call = giving->sample_ns ? call : 0;
		if (!giving->sample_ns)
			atomic_add(&growth.back_lost, 1);
	}
	giving->last_ns = now;
	u->weight = 0;
}

/* Whether the kernel takes the pages as it needs memory: a thread that asks it to gives them. */
static __always_inline bool is_taken(struct task_struct *task)
{
	int call;

	if (!(BPF_CORE_READ(task, flags) & PF_MEMALLOC))
		return false;
	call = syscall_of(task);
	return call != MADVISE && call != PROCESS_MADVISE;
}

SEC("?tp_btf/rss_stat")
int BPF_PROG(sample_growth, struct mm_struct *mm, int member)
{
	struct growing *g = here(&growing);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct mm_rss *m;
	u64 pages, epoch;
	bool grows;

	if (!g || !g->change)
		return 0;
	grows = g->change > 0;
	pages = grows ? g->change : -g->change;
	g->change = 0;
	/* Nobody uses it any more: what is left of it ends. */
	if (!grows && !BPF_CORE_READ(mm, mm_users.counter)) {
		atomic_add(&growth.ended, pages);
		return 0;
	}
	epoch = atomic_add(grows ? &growth.grown : &growth.given_back, pages) >> WIRE_GROWTH_BITS;
	if (growth.from_ns == WIRE_NO_SAMPLES) {
		g->grown.weight = 0;
		g->back.weight = 0;
		return 0;
	}
	m = find_mm((u64)mm);
	if (!m || BPF_CORE_READ(task, mm) != mm || BPF_CORE_READ(task, flags) & PF_KTHREAD ||
	    (!grows && is_taken(task)))
		atomic_add(grows ? &growth.elsewhere : &growth.back_elsewhere, pages);
	else if (grows)
		grow(g, task, m, member, pages, epoch);
	else
		give_back_pages(g, task, m, member, pages, epoch);
	return 0;
}
