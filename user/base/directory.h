/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * directory.h - the system's directory of users: files, and servers if the administrator says so.
 *
 * A server may not answer, so that a call may hang: only a child (aside.h) may make it.
 */
#ifndef QPROF_DIRECTORY_H
#define QPROF_DIRECTORY_H

#include <stdbool.h>
#include <sys/types.h>

enum { DIRECTORY_NAME_MAX = 128 };

struct directory_user {
	char name[DIRECTORY_NAME_MAX];
	char home[256];
};

/* Returns false if there is no such user. */
bool directory_user(uid_t uid, struct directory_user *user);

/* Fills in at most max groups of the user, gid first. Returns how many; 1 where the others are more
 * than that, or not known. */
int directory_groups(const char *name, gid_t gid, gid_t *groups, int max);

#endif
