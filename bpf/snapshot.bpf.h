/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * snapshot.bpf.h - everything about a tree and one of its processes at one instant, in the record
 * of a checkpoint.
 *
 * Each checkpoint begins an epoch, and step_peak is the peak of the epoch before. Example, RSS in
 * MiB: checkpoint A at 100, then up to 300 and down to 120, checkpoint B; then 150, checkpoint C.
 * B says step_peak 300, C says 150; both say peak 300. A process has epochs of its own: if another
 * process hit B, then C says of its own process step_peak 300.
 */
#ifndef QPROF_SNAPSHOT_BPF_H
#define QPROF_SNAPSHOT_BPF_H

#include "gpu.bpf.h"
#include "memcg.bpf.h"
#include "state.bpf.h"
#include "usage.bpf.h"

/* Fills in the memory of one process. is_checkpoint: its next step begins. */
int process_memory(struct proc *proc, bool is_checkpoint, struct wire_memory *to);

/* Fills in the memory of a tree between checkpoints: no step begins. */
int memory_of_tree(u32 job, struct wire_memory *to);

/*
 * Begins a new epoch, so that changes from now on belong to the next step. Then fills in everything
 * but the charge, usage, the name, the value and h.size.
 */
int begin_checkpoint(struct wire_checkpoint *c, struct proc *proc, u32 what, u32 site, u32 tid);

/* Returns true if no other process is in its job: then an audit needs no walk over all. */
static __always_inline bool is_alone(const struct proc *proc)
{
	return proc->signal && *(volatile u32 *)&tree_of(proc->job)->processes == 1;
}

/* Fills in usage, too. Inlined: the frames of all nested calls share 512 bytes of stack. */
static __always_inline void fill_checkpoint(struct wire_checkpoint *c, struct proc *proc, u32 what,
					    u32 site, u32 tid)
{
	begin_checkpoint(c, proc, what, site, tid);
	read_charge(c, proc);
	if (config.audit && is_alone(proc)) {
		used_by_process(proc, &c->own.usage);
		c->usage_stale = used_alone(proc, &c->own.usage, &c->tree.usage);
	} else {
		c->usage_stale = read_tree(c, proc);
	}
	/* used_alone() has no sum; or the sum is older than this process's memory. */
	if (c->tree.memory.hugetlb < c->own.memory.hugetlb)
		c->tree.memory.hugetlb = c->own.memory.hugetlb;
}

/* As fill_checkpoint(), for programs that have room for one more frame. */
int take_snapshot(struct wire_checkpoint *c, struct proc *proc, u32 what, u32 site, u32 tid);

/* Emits a checkpoint that no probe makes, without a name. Returns false if there is no room. */
static __always_inline bool emit_inline(struct proc *proc, u32 what, u32 site, u32 tid)
{
	struct wire_checkpoint *c;

	tell_gpu(proc, tid);
	c = bpf_ringbuf_reserve(&control, sizeof(*c), 0);
	if (!c)
		return false;
	fill_checkpoint(c, proc, what, site, tid);
	c->h.size = sizeof(*c);
	submit(c);
	return true;
}

/* As emit_inline(), for programs that have room for one more frame: the verifier checks it once. */
int emit_milestone(struct proc *proc, u32 what, u32 site, u32 tid);

/*
 * Ends the run, or the job, once. Returns false if there is no room to say so: then it has not
 * ended, and the loader ends it when it has made room.
 */
static __always_inline bool finish_run(struct proc *proc, u32 tid)
{
	struct wire_tree *tree = tree_of(proc->job);

	if (__sync_val_compare_and_swap(&tree->finished, 0, 1))
		return true;
	if (emit_milestone(proc, WIRE_FINISH, WIRE_SITE_NONE, tid))
		return true;
	tree->finished = 0;
	return false;
}

#endif
