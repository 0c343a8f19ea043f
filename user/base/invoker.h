/* SPDX-License-Identifier: GPL-2.0-only */
/* invoker.h - the user who called sudo, who owns the outputs and runs the command. */
#ifndef QPROF_INVOKER_H
#define QPROF_INVOKER_H

#include <stdbool.h>
#include <sys/types.h>

struct invoker {
	uid_t uid;
	gid_t gid;
	char name[64]; /* login name; empty if the uid has none */
	char home[256];
};

/* Returns false if nobody called sudo: we are not root, or root itself started us. */
bool invoker_get(struct invoker *who);

/* Becomes that user for good, with groups, HOME, USER and LOGNAME. Returns 0 or -errno. */
int invoker_become(const struct invoker *who);

#endif
