/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/invoker.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads a decimal number from the environment. Returns false if there is anything else. */
static bool read_id(const char *variable, unsigned int *id)
{
	const char *text = getenv(variable);
	unsigned long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value >= UINT_MAX) /* (uid_t)-1 means "leave as it is" */
		return false;
	*id = value;
	return true;
}

bool invoker_get(struct invoker *who)
{
	const struct passwd *entry;

	memset(who, 0, sizeof(*who));
	if (geteuid() || !read_id("SUDO_UID", &who->uid) || !read_id("SUDO_GID", &who->gid) ||
	    !who->uid)
		return false;
	entry = getpwuid(who->uid);
	if (entry) {
		snprintf(who->name, sizeof(who->name), "%s", entry->pw_name);
		snprintf(who->home, sizeof(who->home), "%s", entry->pw_dir);
	}
	return true;
}

int invoker_become(const struct invoker *who)
{
	int err = who->name[0] ? initgroups(who->name, who->gid) : setgroups(1, &who->gid);

	if (err || setresgid(who->gid, who->gid, who->gid) ||
	    setresuid(who->uid, who->uid, who->uid))
		return -errno;
	if (who->name[0]) {
		setenv("HOME", who->home, 1);
		setenv("USER", who->name, 1);
		setenv("LOGNAME", who->name, 1);
	}
	return 0;
}
