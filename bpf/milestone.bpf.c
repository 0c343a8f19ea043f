// SPDX-License-Identifier: GPL-2.0-only
/* milestone.bpf.c - checkpoints that the loader asks for, and what it asks to be told of. */
#include "job.bpf.h"
#include "program.bpf.h"
#include "snapshot.bpf.h"

struct milestone_args {
	u64 started_ns; /* of the process; or 0: whichever has that number */
	u32 tgid;	/* of the process that the milestone is about */
	u32 what;	/* WIRE_START, WIRE_FINISH, or WIRE_PROGRAM: */
	u32 told;	/* enum wire_told: to tell of, in addition to what is told already */
	u32 gone;	/* 1: even if that process is not tracked any more */
	u32 job;	/* of WIRE_FINISH: the job that it is, or was, in */
	u32 reserved;
};

static struct proc nobody; /* stands for a process that is gone */

/*
 * Emits a milestone for the loader: the attach, or an end without an exit. Or has the programs of a
 * process told: then no such process is also one that is in no job of an audit. Returns 0; 1: no
 * such process; 2: no room. One program for both, since the verifier would go through all of a
 * snapshot for each.
 */
SEC("later.syscall")
int take_milestone(struct milestone_args *args)
{
	struct proc *proc = find_proc(args->tgid);

	if (proc && (args->gone || args->what == WIRE_FINISH) && proc->job != args->job)
		proc = NULL; /* the number is another's by now, or the process has left the job */
	if (!proc && args->gone) {
		nobody.tgid = args->tgid;
		nobody.job = args->job;
		proc = &nobody;
	}
	if (!proc || (args->started_ns && proc->started_ns != args->started_ns))
		return 1;
	if (args->what == WIRE_PROGRAM)
		return tell_programs(proc, args->told, args->tgid) ? 0 : 1;
	if (args->what == WIRE_FINISH)
		return finish_run(proc, args->tgid) ? 0 : 2;
	return emit_milestone(proc, args->what, WIRE_SITE_NONE, args->tgid) ? 0 : 2;
}
