/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job.bpf.h - in an audit: jobs, each a profiled tree among all the processes of the machine.
 *
 * The first process of a tree that hits a checkpoint, or that the loader names, becomes the root of
 * a job, as the target is of a run. From then on its children are born into its job. For children
 * that it has already, the loader calls join_job().
 *
 * Example: bash (100) has started train.py (200), which has started two workers (201, 202). 200
 * hits a checkpoint: it is the root of job 1, and the loader makes 201 and 202 join it. Worker 203,
 * forked later, is in job 1 at once. 100 stays in job 0.
 */
#ifndef QPROF_JOB_BPF_H
#define QPROF_JOB_BPF_H

#include "snapshot.bpf.h"

enum job_refusal {
	NO_JOB = 2, /* is free */
	NO_SHARE,   /* is left of the user's */
};

/*
 * Moves a process to another job: what it has used and what it holds until now stays in the sums of
 * the job before. Does nothing if the process is not in job `from` any more; then returns 1.
 */
int move_process(struct proc *proc, u32 from, u32 to);

/* What the process has used until now stays in the sum of its job, as what it used before it
 * joined. */
int keep_used(struct proc *proc, u32 job);

/* Makes a process of that user the root of a job, unless it is in one. Returns 0 or enum
 * job_refusal. */
int begin_job(struct proc *proc, u32 tid, u32 uid);

/* Counts a checkpoint of a tree that became no job. Returns 0, as a global function has to. */
int count_refusal(int refusal, u32 uid);

static long is_settled(u32 i, struct proc **proc)
{
	return *(volatile u32 *)&(*proc)->waiting == WAITS_NO_MORE ? 0 : 1;
}

/*
 * A command that waits for its exec begins, or leaves the job that was prepared for it. Returns
 * true for whoever is to bring that about, and then sets `waiting` to 0.
 */
static __always_inline bool claim_waiting(struct proc *proc)
{
	const u32 was = __sync_val_compare_and_swap(&proc->waiting, WAITS, WAITS_NO_MORE);

	if (was == WAITS_NO_MORE) /* another does so at this moment */
		short_loop(16384, is_settled, &proc);
	return was == WAITS;
}

/*
 * It is as if nobody had ever asked for the job of that command: what it has used and mapped is job
 * 0's, as it was before. The loader is to learn of it by take_back(), and no record tells of the
 * job: its number is free then, perhaps before the loader has read what was written until now.
 */
static __always_inline void leave_unbegun(struct proc *proc)
{
	tree_of(proc->job)->served = 0;
	proc->flags &= ~WIRE_PROCESS_TARGET;
	proc->job = 0;
	atomic_add(&tree_of(0)->processes, 1);
	proc->begins_job = 0;
	proc->waiting = 0;
}

/* Returns false if the process had its share of checkpoints in this second: it must not push out
 * the records of others. */
static __always_inline bool is_within_limit(struct proc *proc)
{
	u64 now = bpf_ktime_get_ns();

	if (now - proc->window_ns > 1000000000) {
		proc->window_ns = now;
		proc->checkpoints = 0;
	}
	if (!config.checkpoint_limit || atomic_add(&proc->checkpoints, 1) < config.checkpoint_limit)
		return true;
	count(limited_checkpoints);
	return false;
}

/* Fills in what all records of a process say. */
outlined void describe_process(struct wire_process *e, struct proc *proc,
			       struct task_struct *leader)
{
	e->ppid = proc->ppid;
	e->exit_code = 0;
	e->flags = proc->flags;
	e->cmdline_len = 0;
	e->uid = BPF_CORE_READ(leader, real_cred, uid.val);
	e->reserved = 0;
	e->cgroup = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id);
	process_memory(proc, false, &e->memory);
	used_by_process(proc, &e->usage);
	bpf_probe_read_kernel(e->comm, sizeof(e->comm), &leader->comm);
}

static __always_inline void emit_process_of(u32 job, u16 kind, struct proc *proc,
					    struct task_struct *leader, u32 tid, u32 exit_code)
{
	struct wire_process *e = bpf_ringbuf_reserve(&control, sizeof(*e), 0);

	if (!e) {
		count(lost_process_events);
		return;
	}
	fill_header(&e->h, kind, sizeof(*e), job, proc->tgid, tid, proc->started_ns);
	describe_process(e, proc, leader);
	e->exit_code = exit_code;
	submit(e);
}

static __always_inline void emit_process(u16 kind, struct proc *proc, struct task_struct *leader,
					 u32 tid, u32 exit_code)
{
	emit_process_of(proc->job, kind, proc, leader, tid, exit_code);
}

#endif
