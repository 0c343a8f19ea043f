// SPDX-License-Identifier: GPL-2.0-only
/* pids.bpf.c - finds the loader's pid namespace, once at start. */
#include "pids.bpf.h"

u32 pid_level;
u64 pid_namespace;
u32 proc_level;

struct namespace_args {
	u32 above; /* how many levels the namespace of /proc is above the caller's */
};

/* Returns the caller's number in /proc, for the caller to check; 0 if there is no such level. */
SEC("syscall")
int choose_pid_namespace(struct namespace_args *args)
{
	struct task_struct *self = (void *)bpf_get_current_task();
	struct pid *pid = BPF_CORE_READ(self, signal, pids[PIDTYPE_TGID]);
	u32 level = BPF_CORE_READ(pid, level);

	if (args->above > level)
		return 0;
	pid_level = level;
	proc_level = level - args->above;
	pid_namespace = (u64)BPF_CORE_READ(number_at(pid, level), ns);
	return number_of(self, true);
}
