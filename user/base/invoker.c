/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/invoker.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/directory.h"
#include "base/log.h"

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

/* What a child tells, a packet each: this, then all groups. */
struct entry {
	struct directory_user user;
	int n_groups;
};

enum { GROUPS_AT_A_TIME = 4096, WAIT_MS = 5000 };

/* The child. Of a user who is not known it tells nothing. */
static void look_up(void *context, int fd)
{
	struct invoker *who = context;
	struct entry entry = {.n_groups = 0};
	int n;

	if (!directory_user(who->uid, &entry.user))
		return;
	entry.n_groups = directory_groups(entry.user.name, who->gid, who->groups, NGROUPS_MAX);
	send(fd, &entry, sizeof(entry), MSG_NOSIGNAL);
	for (int at = 0; at < entry.n_groups; at += n) {
		n = entry.n_groups - at;
		n = n < GROUPS_AT_A_TIME ? n : GROUPS_AT_A_TIME;
		send(fd, who->groups + at, (size_t)n * sizeof(gid_t), MSG_NOSIGNAL);
	}
}

/* Returns the bytes of the next packet; 0: there is none. */
static size_t receive(const struct aside *child, void *packet, size_t size)
{
	ssize_t n = -1;

	if (aside_has_answered(child, WAIT_MS))
		n = recv(child->fd, packet, size, MSG_DONTWAIT);
	else
		log_info("the directory of users did not answer for %d s: the user who called "
			 "sudo goes without a name, a home and further groups",
			 WAIT_MS / 1000);
	return n > 0 ? (size_t)n : 0;
}

static void take(struct invoker *who, const struct aside *child)
{
	struct entry entry;
	size_t n = 0, more;

	if (receive(child, &entry, sizeof(entry)) != sizeof(entry))
		return;
	while (n < (size_t)entry.n_groups) {
		more = receive(child, who->groups + n, (NGROUPS_MAX - n) * sizeof(gid_t));
		if (!more)
			return;
		n += more / sizeof(gid_t);
	}
	who->n_groups = entry.n_groups;
	who->user = entry.user;
}

/* A directory of users may not answer, and signals may wait by now: so a child asks. */
static void ask(struct invoker *who)
{
	struct aside child;

	who->n_groups = 1;
	if (!aside_begin(&child, look_up, NULL, who)) {
		take(who, &child);
		aside_end(&child);
	}
	who->groups[0] = who->gid;
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
		ask(&known);
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
	if (who->user.name[0]) {
		setenv("HOME", who->user.home, 1);
		setenv("USER", who->user.name, 1);
		setenv("LOGNAME", who->user.name, 1);
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
