/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * invoker.h - the user who called sudo, who owns the outputs and runs the command.
 *
 * What that user names is opened, made, renamed and removed with the rights of that user, so that
 * the kernel decides what the name may lead to. Nothing is made by root and then given away.
 */
#ifndef QPROF_INVOKER_H
#define QPROF_INVOKER_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/directory.h"

struct invoker {
	uid_t uid;
	gid_t gid;
	struct directory_user user; /* without a name if the uid has none */
	gid_t groups[NGROUPS_MAX];  /* all, gid among them */
	int n_groups;
};

/*
 * Returns NULL if nobody called sudo: we are not root, or root itself started us. The first call
 * looks the name and the groups up; later ones only read the environment.
 */
const struct invoker *invoker_get(void);

/* From here on nobody called sudo: all that is written is root's. */
void invoker_forget(void);

/* Becomes that user for good, with groups, HOME, USER and LOGNAME. Returns 0 or -errno. */
int invoker_become(const struct invoker *who);

/*
 * Until invoker_leave(), the calling thread has the invoker's rights to files; no other thread is
 * touched. Returns what invoker_leave() is to be given, or -errno: then nothing may be opened.
 * Without an invoker, and where it has been entered before, nothing changes.
 */
int invoker_enter(void);
/* Leaves errno alone. */
void invoker_leave(int entered);

#endif
