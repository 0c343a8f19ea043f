/* SPDX-License-Identifier: GPL-2.0-only */
/* stack.bpf.h - what others tell stack.bpf.c, and ask of it. All is dead code without --stacks. */
#ifndef QPROF_STACK_BPF_H
#define QPROF_STACK_BPF_H

#include "mms.bpf.h"

/* Samples, and code objects of Python. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} stacks __weak SEC(".maps");

/* Pages that wait for a sample. */
struct unsampled {
	u64 left;	  /* pages until the next sample */
	u64 weight, late; /* as in struct wire_stack, as the following */
	u64 first_epoch, epoch;
};

/* The last sample of what was given back. */
struct giving {
	u64 call; /* of which call to the kernel; 0: no call that still goes on */
	u64 sample_ns, last_ns;
	u64 regs[WIRE_STACK_REGS]; /* for a look at them */
};

/* What a CPU knows of growth there. Programs at the tracepoint run one after the other. */
struct growing {
	s64 change; /* pages of the event that is being told of; 0: it was */
	struct unsampled grown, back;
	struct giving giving;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct growing);
} growing __weak SEC(".maps");

extern struct wire_growth growth;

/* Of an audit: the jobs that are sampled, by wire_header.job. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_MAX_JOBS);
	__type(key, u32);
	__type(value, struct wire_sampled_job);
} sampled_jobs __weak SEC(".maps");

/* Returns the number under which a job is sampled; 0: it is not. */
static __always_inline u32 sampled_run(u32 job)
{
	const struct wire_tree *tree = tree_of(job);

	return tree->finished ? 0 : *(volatile u32 *)&tree->sampled;
}

/* Says by how many pages memory has changed at this event: the program that samples runs next. In
 * an audit it has something to do as jobs grow that are sampled. */
static __always_inline void tell_growth(const struct mm_rss *m, u32 member, s64 change)
{
	struct growing *g;

	if (!config.stacks || (config.audit && !sampled_run(job_of(m->rss))))
		return;
	g = here(&growing);
	if (g)
		g->change = member == MM_SWAPENTS || (config.audit && change < 0) ? 0 : change;
}

/* Begins an epoch of growth, or of what is given back. Returns the word that it begins with. */
static __always_inline u64 begin_growth(u64 *word)
{
	const u64 next = 1ULL << WIRE_GROWTH_BITS;

	return config.stacks && !config.audit ? atomic_add(word, next) + next : 0;
}

/* Returns how many pages of memory have ended so far. */
static __always_inline u64 ended_pages(void)
{
	return config.stacks ? *(volatile u64 *)&growth.ended : 0;
}

/* Returns what was allocated on GPUs so far. */
static __always_inline u64 gpu_growth(void)
{
	return config.stacks ? *(volatile u64 *)&growth.gpu_grown : 0;
}

#endif
