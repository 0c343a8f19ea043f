/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pids.bpf.h - what a task is called: by the number that it has in the loader's /proc, everywhere,
 * in maps as in records.
 *
 * In the initial pid namespace that is task->tgid and task->pid, and the rest is code that the
 * verifier finds dead. In a nested one, such as a container's, the loader and its user know nothing
 * of these numbers. There a process is tracked only if it is in the loader's namespace, as all
 * descendants of one that is are, and as an iterator over tasks has it, too.
 *
 * /proc is of that namespace, or of one further out: `unshare --pid` without --mount-proc.
 */
#ifndef QPROF_PIDS_BPF_H
#define QPROF_PIDS_BPF_H

#include "state.bpf.h"

/* The loader's: how deep it is nested, and its struct pid_namespace; and how deep that of its /proc
 * is. Set by pids.bpf.c. */
u32 pid_level __weak;
u64 pid_namespace __weak;
u32 proc_level __weak;

static __always_inline struct upid *number_at(struct pid *pid, u32 level)
{
	return (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	       level * bpf_core_type_size(struct upid);
}

/* The number of a task, or of its process; 0: it is not in the loader's namespace. Static, for a
 * task may be a pointer to the verifier or a number, and not to be inlined, for its stack. */
static __noinline u32 number_of(struct task_struct *task, bool of_process)
{
	struct pid *pid = of_process ? BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID])
				     : BPF_CORE_READ(task, thread_pid);

	if (!pid || BPF_CORE_READ(pid, level) < pid_level ||
	    (u64)BPF_CORE_READ(number_at(pid, pid_level), ns) != pid_namespace)
		return 0;
	return BPF_CORE_READ(number_at(pid, proc_level), nr);
}

static __always_inline u32 tgid_of(struct task_struct *task)
{
	return config.nested ? number_of(task, true) : BPF_CORE_READ(task, tgid);
}

static __always_inline u32 tid_of(struct task_struct *task)
{
	return config.nested ? number_of(task, false) : BPF_CORE_READ(task, pid);
}

/* Of the running task: its tgid in the high half, its tid in the low one. */
static __always_inline u64 current_id(void)
{
	struct task_struct *task;

	if (!config.nested)
		return bpf_get_current_pid_tgid();
	task = (void *)bpf_get_current_task();
	return (u64)tgid_of(task) << 32 | tid_of(task);
}

#endif
