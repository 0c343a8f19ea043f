/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * launch.h - starts the command to be profiled. We fork it early, hold it back until everything is
 * attached, and then let it exec. If we die before, it exits; after, it does not depend on us.
 */
#ifndef QPROF_LAUNCH_H
#define QPROF_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "kernel/hooks.h"
#include "base/invoker.h"

/* What the child does first of all, in its own name: call may be NULL. Returns 0 or an errno. */
struct launch_first {
	int (*call)(void *context);
	void *context;
};

struct launch {
	pid_t pid;
	bool has_first; /* it does something first of all */
	int go;		/* written to let it go */
	int failed;	/* the errno of exec is read from here; a successful exec closes it */
	bool went;	/* it was let go */
};

/* Forks the child, which waits. as: the user that it becomes, or NULL. Returns 0, or -1 and *err.
 */
int launch_prepare(struct launch *launch, char *const *argv, const struct invoker *as,
		   const struct launch_first *first, struct error *err);

/* Waits until the child has done what it does first, once. Returns what that returned; unless that
 * is 0, the child has exited. */
int launch_first(struct launch *launch);

/*
 * Lets the child exec. hooks: variables for its environment. `failed` can be read once it has, or
 * cannot. Answer what it asks for until then: it may wait in its exec for the search of its code.
 */
void launch_go(struct launch *launch, const struct hooks *hooks);
/*
 * Returns 0 if it has; or -1 and *err with the status 126 (cannot execute) or 127 (not found), and
 * the child is gone. Waits until one or the other is known.
 */
int launch_answer(struct launch *launch, const char *command, struct error *err);

/* Makes a child exit that was not let go. */
void launch_cancel(struct launch *launch);

/* Returns where execvp will find the command, allocated; or NULL and *err, status 126 or 127. */
char *launch_find(const char *command, struct error *err);

#endif
