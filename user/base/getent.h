/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * getent.h - the directory of users for a program that can load none of libc's services: getent(1)
 * is asked, which a libc comes with; whom it does not know, the files of local users may.
 */
#ifndef QPROF_GETENT_H
#define QPROF_GETENT_H

#include "base/directory.h"

struct getent {
	const char *program;	    /* run by its path: PATH may be the invoker's */
	const char *passwd, *group; /* the files of local users */
};

/* As directory_user() and directory_groups(). */
bool getent_user(const struct getent *from, uid_t uid, struct directory_user *user);
int getent_groups(const struct getent *from, const char *name, gid_t gid, gid_t *gids, int max);

#endif
