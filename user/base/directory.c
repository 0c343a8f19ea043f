/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/directory.h"

#ifdef QPROF_STATIC

#include "base/getent.h"

/* libc would load a library for each service of nsswitch.conf(5), which needs the same libc. */
static const struct getent system_getent = {
	.program = "/usr/bin/getent", .passwd = "/etc/passwd", .group = "/etc/group"};

bool directory_user(uid_t uid, struct directory_user *user)
{
	return getent_user(&system_getent, uid, user);
}

int directory_groups(const char *name, gid_t gid, gid_t *groups, int max)
{
	return getent_groups(&system_getent, name, gid, groups, max);
}

#else

#include <grp.h>
#include <pwd.h>
#include <stdio.h>

bool directory_user(uid_t uid, struct directory_user *user)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	if (getpwuid_r(uid, &entry, room, sizeof(room), &found) || !found)
		return false;
	snprintf(user->name, sizeof(user->name), "%s", found->pw_name);
	snprintf(user->home, sizeof(user->home), "%s", found->pw_dir);
	return true;
}

int directory_groups(const char *name, gid_t gid, gid_t *groups, int max)
{
	int n = max;

	if (getgrouplist(name, gid, groups, &n) >= 0)
		return n;
	groups[0] = gid;
	return 1;
}

#endif
