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
 */
#include "pids.bpf.h"
#include "python.bpf.h"
#include "stack.bpf.h"

struct wire_growth growth;

enum { WAKE_BYTES = 1 << 20 };

/* What the last sample was of, on any CPU: a guess, as CPUs race for it. */
static u64 last_memory, last_code;

/*
 * How to submit: to wake the loader for each sample would cost more than the sample. But it is to
 * look at new code at once, for the process may be gone in a moment.
 */
static __always_inline u64 wakeup(const struct wire_stack *s)
{
	const bool is_new = last_memory != s->memory || last_code != s->code;

	last_memory = s->memory;
	last_code = s->code;
	if (is_new || bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA) > WAKE_BYTES)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

/* Returns how many pages come before the next sample: from 1 to twice the mean. */
static __always_inline u64 choose_gap(u64 samples)
{
	u64 level = samples / WIRE_STACK_LEVEL;
	u64 mean = (u64)config.stack_pages
		   << (level < WIRE_STACK_LEVELS ? level : WIRE_STACK_LEVELS);

	return 1 + bpf_get_prandom_u32() % (2 * mean);
}

static __always_inline u32 kind_of(int member)
{
	return member == MM_ANONPAGES	? WIRE_STACK_ANON
	       : member == MM_FILEPAGES ? WIRE_STACK_FILE
					: WIRE_STACK_SHMEM;
}

/* Copies the stack, from the piece that its end is in, up to what cannot be read. */
static __always_inline void copy_stack(struct wire_stack *s, u64 sp)
{
	s->base = sp & ~(WIRE_STACK_PIECE - 1ULL);
	s->len = 0;
	for (u32 at = 0; at < WIRE_STACK_BYTES; at += WIRE_STACK_PIECE) {
		if (bpf_probe_read_user(&s->stack[at], WIRE_STACK_PIECE, (void *)s->base + at))
			break;
		s->len = at + WIRE_STACK_PIECE;
	}
}

static __always_inline bool copy_registers(struct wire_stack *s, struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	__builtin_memset(s->regs, 0, sizeof(s->regs));
	return !bpf_probe_read_kernel(s->regs, sizeof(*regs), regs);
}

/* Addresses come again, also those of code objects where they are not randomised: times do not. */
static __always_inline u64 program_of(struct task_struct *task, const struct mm_rss *m)
{
	return m->started_ns ^ BPF_CORE_READ(task, self_exec_id) << 48;
}

/* A library may be mapped in the place of another of the same size: its linker has told us so. */
static __always_inline u64 code_of(struct task_struct *task, const struct mm_rss *m)
{
	const struct proc *proc = find_proc(m->tgid);

	return BPF_CORE_READ(task, mm, exec_vm) ^ (proc ? proc->code_change << 32 : 0);
}

static __always_inline void fill_sample(struct wire_stack *s, const struct growing *g,
					struct task_struct *task, const struct mm_rss *m)
{
	s->time_ns = bpf_ktime_get_ns();
	s->started_ns = m->started_ns;
	s->tgid = m->tgid;
	s->tid = tid_of(task);
	s->parent = tgid_of(BPF_CORE_READ(task, real_parent));
	s->weight = g->weight;
	s->late = g->late;
	s->first_epoch = g->first_epoch;
	s->epoch = g->epoch;
	s->memory = m->key;
	s->program = program_of(task, m);
	s->code = code_of(task, m);
}

static __always_inline void copy_frames(struct wire_stack *s, u32 n, u32 end)
{
	const struct python_frames *frames = here(&python_frames);

	s->python_end = end;
	s->n_python = 0;
	if (frames && n && n <= WIRE_PYTHON_FRAMES &&
	    !bpf_probe_read_kernel(s->python, n * sizeof(*s->python), frames))
		s->n_python = n;
}

static __always_inline void take_sample(struct growing *g, struct task_struct *task,
					const struct mm_rss *m, int member)
{
	u32 end, n = walk_python(task, m->key, program_of(task, m), &end);
	struct wire_stack *s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);

	g->left = choose_gap(atomic_add(&growth.samples, 1));
	if (!s) {
		atomic_add(&growth.lost, 1);
	} else {
		fill_sample(s, g, task, m);
		s->kind = kind_of(member);
		copy_frames(s, n, end);
		if (copy_registers(s, task))
			copy_stack(s, PT_REGS_SP((struct pt_regs *)s->regs));
		else
			s->base = s->len = 0;
		bpf_ringbuf_submit(s, wakeup(s));
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
