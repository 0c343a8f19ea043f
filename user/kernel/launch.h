/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * launch.h - starts the command to be profiled: forked early, held back until everything is
 * attached, then let go to exec. If we die before, it exits; afterwards it does not depend on us.
 */
#ifndef QPROF_LAUNCH_H
#define QPROF_LAUNCH_H

#include <sys/types.h>

#include "base/error.h"
#include "kernel/hooks.h"
#include "base/invoker.h"

struct launch {
	pid_t pid;
	int go;	    /* written to let it go */
	int failed; /* what exec failed with is read from here; closed by a successful exec */
};

/*
 * Forks the child, which waits. as: whom it becomes, NULL for nobody else. hooks: what it finds in
 * its environment. 0, or -1 and *err.
 */
int launch_prepare(struct launch *launch, char *const *argv, const struct invoker *as,
		   const struct hooks *hooks, struct error *err);

/*
 * Lets the child exec. 0 once it has; or -1 and *err with the status 126 (cannot execute) or 127
 * (not found), and the child is gone.
 */
int launch_go(struct launch *launch, const char *command, struct error *err);

/* Gives up on a child that was not let go: it exits. */
void launch_cancel(struct launch *launch);

/* Where execvp will find the command: malloc'ed; or NULL and *err with the status 126 or 127. */
char *launch_find(const char *command, struct error *err);

#endif
