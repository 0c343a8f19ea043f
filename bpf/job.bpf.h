/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job.bpf.h - in an audit: trees of their own among all the processes of the machine.
 *
 * The first process of a tree that comes to a checkpoint, or that the loader names, becomes the
 * root of a job: what a run calls its target. Its children are of its job from their fork on; those
 * that it has already are named by the loader, which knows whose children they are.
 */
#ifndef QPROF_JOB_BPF_H
#define QPROF_JOB_BPF_H

#include "snapshot.bpf.h"

/* Makes a process the root of a job, unless it is in one. 0, or not: there is none left. */
int begin_job(struct proc *proc, u32 tid);

/* What is said of a process in each of its records. */
static __always_inline void describe_process(struct wire_process *e, struct proc *proc,
					     struct task_struct *leader)
{
	e->ppid = proc->ppid;
	e->exit_code = 0;
	e->flags = proc->flags;
	e->cmdline_len = 0;
	e->uid = BPF_CORE_READ(leader, real_cred, uid.val);
	e->reserved = 0;
	e->cgroup = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id);
	process_memory(proc, tree_of(proc->job)->epoch, &e->memory);
	used_by_process(proc, &e->usage);
	bpf_probe_read_kernel(e->comm, sizeof(e->comm), &leader->comm);
}

static __always_inline void emit_process(u16 kind, struct proc *proc, struct task_struct *leader,
					 u32 tid, u32 exit_code)
{
	struct wire_process *e = bpf_ringbuf_reserve(&control, sizeof(*e), 0);

	if (!e) {
		count(lost_process_events);
		return;
	}
	fill_header(&e->h, kind, sizeof(*e), proc->job, proc->tgid, tid, proc->started_ns);
	describe_process(e, proc, leader);
	e->exit_code = exit_code;
	bpf_ringbuf_submit(e, 0);
}

#endif
