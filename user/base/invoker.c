/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/invoker.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
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

static void look_up(struct invoker *who)
{
	const struct passwd *entry = getpwuid(who->uid);

	who->groups[0] = who->gid;
	who->n_groups = 1;
	if (!entry)
		return;
	snprintf(who->name, sizeof(who->name), "%s", entry->pw_name);
	snprintf(who->home, sizeof(who->home), "%s", entry->pw_dir);
	who->n_groups = NGROUPS_MAX;
	if (getgrouplist(who->name, who->gid, who->groups, &who->n_groups) < 0)
		who->n_groups = 1;
}

const struct invoker *invoker_get(void)
{
	static struct invoker known;
	uid_t uid;
	gid_t gid;

	if (geteuid() || !read_id("SUDO_UID", &uid) || !read_id("SUDO_GID", &gid) || !uid)
		return NULL;
	if (!known.n_groups || known.uid != uid || known.gid != gid) {
		known = (struct invoker){.uid = uid, .gid = gid};
		look_up(&known);
	}
	return &known;
}

void invoker_forget(void)
{
	unsetenv("SUDO_UID");
}

int invoker_become(const struct invoker *who)
{
	if (setgroups((size_t)who->n_groups, who->groups) ||
	    setresgid(who->gid, who->gid, who->gid) || setresuid(who->uid, who->uid, who->uid))
		return -errno;
	if (who->name[0]) {
		setenv("HOME", who->home, 1);
		setenv("USER", who->name, 1);
		setenv("LOGNAME", who->name, 1);
	}
	return 0;
}

enum { AS_BEFORE, AS_INVOKER };

/* What root itself has. setgroups(3) would change all threads: the system call changes one. */
static struct {
	gid_t groups[NGROUPS_MAX];
	int n;
} own;

static int set_groups(int n, const gid_t *groups)
{
	return syscall(SYS_setgroups, n, groups) ? -errno : 0;
}

/*
 * The kernel takes the capabilities that are about files from a thread whose fsuid leaves 0, and
 * gives them back with it. setfsuid() only says what was before, so it is asked again.
 */
int invoker_enter(void)
{
	const struct invoker *who = invoker_get();
	int err;

	if (!who || (uid_t)setfsuid((uid_t)-1) == who->uid)
		return AS_BEFORE;
	own.n = getgroups(NGROUPS_MAX, own.groups);
	if (own.n < 0)
		return -errno;
	err = set_groups(who->n_groups, who->groups);
	if (err)
		return err;
	setfsgid(who->gid);
	setfsuid(who->uid);
	if ((uid_t)setfsuid((uid_t)-1) == who->uid && (gid_t)setfsgid((gid_t)-1) == who->gid)
		return AS_INVOKER;
	invoker_leave(AS_INVOKER);
	return -EPERM;
}

void invoker_leave(int entered)
{
	const int before = errno;

	if (entered == AS_INVOKER) {
		setfsuid(geteuid());
		setfsgid(getegid());
		set_groups(own.n, own.groups);
	}
	errno = before;
}
