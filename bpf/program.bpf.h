/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * program.bpf.h - the life of a program, from its exec to its exit, told with a snapshot at either
 * end. Only of processes that the loader asks for, and of their descendants.
 *
 * Example: the loader has asked for the children of a script (100), which runs convert.py:
 *   fork 100 -> 101    101 is born with told_programs
 *   exec 101           WIRE_EXEC, then WIRE_PROGRAM that it begins
 *   exit 101           WIRE_PROGRAM that it ends, then WIRE_EXIT
 */
#ifndef QPROF_PROGRAM_BPF_H
#define QPROF_PROGRAM_BPF_H

#include "snapshot.bpf.h"

static __always_inline bool tells_children(const struct proc *proc)
{
	return proc->told & WIRE_TOLD_CHILDREN || proc->told_programs;
}

/* In an audit only a job has a snapshot: all else is the rest of the machine. */
static __always_inline void tell_program(struct proc *proc, u32 site, u32 tid)
{
	struct wire_tree *tree = tree_of(proc->job);

	if (tree->finished || (config.audit && !proc->job))
		return;
	if (emit_milestone(proc, WIRE_PROGRAM, site, tid))
		return;
	atomic_add(&tree->epoch, 1); /* a hole in the sequence */
	count(lost_checkpoints);
}

static __always_inline void begin_program(struct proc *proc, u32 tid)
{
	if (proc->told_programs)
		tell_program(proc, WIRE_PROGRAM_BEGINS, tid);
}

/* told: enum wire_told. Returns false in an audit if the process is in no job. */
static __always_inline bool tell_programs(struct proc *proc, u32 told)
{
	if (config.audit && !proc->job)
		return false;
	proc->told |= told & (WIRE_TOLD_END | WIRE_TOLD_CHILDREN);
	if (told & WIRE_TOLD_PROGRAMS)
		proc->told_programs = 1;
	return true;
}

static __always_inline void end_program(struct proc *proc, u32 site, u32 tid)
{
	const bool told = proc->told_programs || proc->told & WIRE_TOLD_END;

	proc->told = 0;
	if (told)
		tell_program(proc, site, tid);
}

#endif
