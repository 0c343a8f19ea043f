/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pids.bpf.h - the numbers of tasks: those of the loader's /proc, in maps as in records.
 *
 * In the initial pid namespace these are task->tgid and task->pid, and the verifier removes the
 * rest as dead code. In a nested namespace, such as a container's, the loader and its user do not
 * know these numbers. There a process is tracked only if it is in the loader's namespace. All its
 * descendants are, too, and an iterator over tasks visits no others.
 *
 * /proc may belong to a namespace further out: `unshare --pid` without --mount-proc.
 *
 * Example: a process is 4711 in the initial namespace (level 0), 17 in the container's (level 1)
 * and 1 in the loader's (level 2). With /proc mounted in the container, pid_level is 2, proc_level
 * is 1, and the process is called 17.
 */
#ifndef QPROF_PIDS_BPF_H
#define QPROF_PIDS_BPF_H

#include "state.bpf.h"

/*
 * The level of the loader's pid namespace, 0 for the initial one, and its struct pid_namespace; the
 * level of the namespace of its /proc. pids.bpf.c sets them.
 */
extern u32 pid_level;
extern u64 pid_namespace;
extern u32 proc_level;

static __always_inline struct upid *number_at(struct pid *pid, u32 level)
{
	return (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	       level * bpf_core_type_size(struct upid);
}

/*
 * Returns the number of a task, or of its process; 0 if it is not in the loader's namespace.
 * Static, since to the verifier a task may be a pointer or a number; not inlined, for its stack.
 */
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

/* Returns the numbers of the running task: its tgid in the high half, its tid in the low one. */
static __always_inline u64 current_id(void)
{
	struct task_struct *task;

	if (!config.nested)
		return bpf_get_current_pid_tgid();
	task = (void *)bpf_get_current_task();
	return (u64)tgid_of(task) << 32 | tid_of(task);
}

#endif
