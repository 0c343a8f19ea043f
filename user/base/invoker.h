/* SPDX-License-Identifier: GPL-2.0-only */
/* invoker.h - who called sudo: whose outputs and whose command these are. */
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

/* False if we are not root by way of sudo: nothing changes then. */
bool invoker_get(struct invoker *who);

/* Becomes them for good, with their groups, HOME, USER and LOGNAME. 0, or -errno. */
int invoker_become(const struct invoker *who);

#endif
