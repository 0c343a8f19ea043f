/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scope.h - a memory cgroup for the launched command alone, below the one that we are in: its
 *limits hold for the command as before, and what it is charged is the command's and its
 *descendants'.
 *
 * cgroup v1 has it at once. cgroup v2 gives controllers to the cgroups below another only if that
 * has no processes, unless it is the root. So if we are alone in ours, we move to a second one
 * below it first:
 *
 *	run-r1.scope [qprof-bpf]	run-r1.scope
 *					  qprof-scope-42-0 [qprof-bpf]
 *					  qprof-scope-42-1 [the command]
 *
 * Each is removed at the end. If we are killed, they stay, empty when the command has ended, and
 *the next scope in the same place removes them. A lock on the directory says that its maker lives.
 */
#ifndef QPROF_SCOPE_H
#define QPROF_SCOPE_H

#include <sys/types.h>

#include "base/error.h"
#include "kernel/memory_cgroup.h"

struct scope_group {
	char path[2 * PATH_MAX]; /* "": there is none */
	int lock;
};

struct scope {
	struct memory_cgroup above; /* where we are */
	struct scope_group command, own;
};

/* Makes it. Returns 0; or -1 and *err: it cannot be, and nothing was changed. */
int scope_make(struct scope *scope, struct error *err);
/* Moves a process into it, which has no children yet. 0; or -1 and *err. */
int scope_take(const struct scope *scope, pid_t pid, struct error *err);
/* Removes what was made, of zeros nothing. Says so if processes are left in it. */
void scope_remove(struct scope *scope);

#endif
