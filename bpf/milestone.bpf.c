// SPDX-License-Identifier: GPL-2.0-only
/* milestone.bpf.c - checkpoints that the loader asks for, and what it asks to be told of. */
#include "job.bpf.h"
#include "program.bpf.h"
#include "snapshot.bpf.h"

struct milestone_args {
	u64 started_ns; /* of the process; or 0: whichever has that number */
	u32 tgid;	/* of the process that the milestone is about */
	u32 what;	/* WIRE_START, WIRE_FINISH, or WIRE_PROGRAM: what it runs already begins */
	u32 told;	/* of ask_for_programs(): enum wire_told, in addition to what is told */
	u32 gone;	/* 1: even if that process is not tracked any more */
	u32 job;	/* of WIRE_FINISH: the job that it is, or was, in */
	u32 reserved;
};

static struct proc nobody; /* stands for a process that is gone */

static __always_inline bool is_another(const struct proc *proc, const struct milestone_args *args)
{
	return args->started_ns && proc->started_ns != args->started_ns;
}

/* Has the programs of a process told from now on. Returns 0; 1: no such process, or in an audit, it
 * is in no job. A program of its own, since that of milestones is 9,000 instructions to the
 * verifier, and a Python program asks for this alone. */
SEC("syscall")
int ask_for_programs(struct milestone_args *args)
{
	struct proc *proc = find_proc(args->tgid);

	if (!proc || is_another(proc, args))
		return 1;
	return tell_programs(proc, args->told) ? 0 : 1;
}

/*
 * Emits a milestone for the loader: the attach, an end without an exit, or the begin of what a
 * process runs already. Returns 0; 1: no such process; 2: no room. One program for all, since the
 * verifier would go through all of a snapshot for each.
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
	if (!proc || is_another(proc, args))
		return 1;
	if (args->what == WIRE_PROGRAM) {
		begin_program(proc, args->tgid);
		return 0;
	}
	if (args->what == WIRE_FINISH)
		return finish_run(proc, args->tgid) ? 0 : 2;
	return emit_milestone(proc, args->what, WIRE_SITE_NONE, args->tgid) ? 0 : 2;
}
