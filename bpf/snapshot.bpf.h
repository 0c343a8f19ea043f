/* SPDX-License-Identifier: GPL-2.0-only */
/* snapshot.bpf.h - everything about the tree and one process at one instant, into a checkpoint's
 * record. */
#ifndef QPROF_SNAPSHOT_BPF_H
#define QPROF_SNAPSHOT_BPF_H

#include "state.bpf.h"
#include "usage.bpf.h"

/* The memory of one process; step_peak is that of the epoch. */
int process_memory(struct proc *proc, u64 epoch, struct wire_memory *to);

/*
 * Fills in everything but usage, the name, the value and h.size. Begins a new epoch, first: what
 * changes from now on belongs to the next step.
 */
int begin_checkpoint(struct wire_checkpoint *c, struct proc *proc, u32 what, u32 site, u32 tid);

/* No other is in its job: in an audit no walk over all that are tracked is needed then. */
static __always_inline bool is_alone(const struct proc *proc)
{
	return proc->signal && *(volatile u32 *)&tree_of(proc->job)->processes == 1;
}

/* And usage, too. Inlined, so that the stacks of what it calls do not add up: 512 bytes are all. */
static __always_inline void fill_checkpoint(struct wire_checkpoint *c, struct proc *proc, u32 what,
					    u32 site, u32 tid)
{
	begin_checkpoint(c, proc, what, site, tid);
	used_by_process(proc, &c->own.usage);
	if (config.audit && is_alone(proc))
		c->usage_stale = used_alone(proc, &c->own.usage, &c->tree.usage);
	else
		c->usage_stale = read_tree(&c->tree, proc->job, c->h.time_ns);
	/* Alone, or the sum is of before it had that. */
	if (c->tree.memory.hugetlb < c->own.memory.hugetlb)
		c->tree.memory.hugetlb = c->own.memory.hugetlb;
}

/* A checkpoint that is no probe's: WIRE_START or WIRE_FINISH. False: there was no room for it. */
static __always_inline bool emit_milestone(u8 what, struct proc *proc, u32 tid)
{
	struct wire_checkpoint *c = bpf_ringbuf_reserve(&control, sizeof(*c), 0);

	if (!c)
		return false;
	fill_checkpoint(c, proc, what, WIRE_SITE_NONE, tid);
	c->h.size = sizeof(*c);
	bpf_ringbuf_submit(c, 0);
	return true;
}

/*
 * The run ends, once. False: there was no room to say so. Then it has not ended, and the loader,
 * which has made room, will say it.
 */
static __always_inline bool finish_run(struct proc *proc, u32 tid)
{
	struct wire_tree *tree = tree_of(proc->job);

	if (__sync_val_compare_and_swap(&tree->finished, 0, 1))
		return true;
	if (emit_milestone(WIRE_FINISH, proc, tid))
		return true;
	tree->finished = 0;
	return false;
}

#endif
