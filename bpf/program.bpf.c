// SPDX-License-Identifier: GPL-2.0-only
/* program.bpf.c - the loader asks for what is told of a process's programs; see program.bpf.h. */
#include "program.bpf.h"

struct program_args {
	u64 started_ns;
	u32 tgid;
	u32 told; /* enum wire_told: in addition to what is told already */
};

/* Returns 0; 1: no such process, or in an audit, it is in no job. */
SEC("syscall")
int tell_programs(struct program_args *args)
{
	const u32 told = args->told;
	struct proc *proc = find_proc(args->tgid);

	if (!proc || proc->started_ns != args->started_ns || (config.audit && !proc->job))
		return 1;
	proc->told |= told & (WIRE_TOLD_END | WIRE_TOLD_CHILDREN);
	if (told & WIRE_TOLD_PROGRAMS)
		proc->told_programs = 1;
	if (told & WIRE_TOLD_NOW)
		tell_program(proc, WIRE_PROGRAM_BEGINS, args->tgid);
	return 0;
}
