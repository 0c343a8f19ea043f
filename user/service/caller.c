/* SPDX-License-Identifier: GPL-2.0-only */
#include "service/caller.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

#include "base/log.h"
#include "kernel/pids.h"
#include "kernel/procfs.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* from 6.5 on */
#endif

/* What /proc/PID/status says of a process's rights. */
struct rights {
	unsigned int uid[4], gid[4]; /* real, effective, saved, of the file system */
	uint64_t permitted;
	unsigned int lines; /* of these that were there */
};

static void read_line(struct rights *r, const char *line)
{
	unsigned int *id = NULL;

	if (!strncmp(line, "Uid:", 4))
		id = r->uid;
	else if (!strncmp(line, "Gid:", 4))
		id = r->gid;
	if (id)
		r->lines += sscanf(line + 4, "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4;
	else
		r->lines += sscanf(line, "CapPrm: %" SCNx64, &r->permitted) == 1;
}

static bool read_rights(uint32_t tgid, struct rights *r)
{
	char path[64], line[1024];
	FILE *file;

	*r = (struct rights){0};
	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		read_line(r, line);
	fclose(file);
	return r->lines == 3;
}

static bool are_all(const unsigned int id[4], unsigned int wanted)
{
	return id[0] == wanted && id[1] == wanted && id[2] == wanted && id[3] == wanted;
}

/* The kernel gives files that only a tracer may read to root if the process is not dumpable: as
 * one is that has executed a file that its user may not read, or that changed its ids. */
static bool is_dumpable(uint32_t tgid, uid_t uid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/mem", tgid);
	return !stat(path, &st) && st.st_uid == uid;
}

/* In another one it may have rights that its numbers do not tell. */
static bool is_in_our_user_namespace(uint32_t tgid)
{
	char path[64];
	struct stat own, other;

	snprintf(path, sizeof(path), "/proc/%u/ns/user", tgid);
	return !stat("/proc/self/ns/user", &own) && !stat(path, &other) &&
	       own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

static bool is_own(const struct ucred *caller, uint32_t tgid)
{
	struct rights r;

	if (!read_rights(tgid, &r))
		return false;
	if (!caller->uid)
		return true;
	return are_all(r.uid, caller->uid) && are_all(r.gid, caller->gid) && !r.permitted &&
	       is_dumpable(tgid, caller->uid) && is_in_our_user_namespace(tgid);
}

/*
 * Before 6.5 the kernel tells no more than a number, which by now may be that of another process.
 * That is of the same user, or caller_owns() refuses it.
 */
int caller_of(int connection, struct ucred *caller)
{
	socklen_t size = sizeof(*caller);
	int pidfd;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, caller, &size))
		return -errno;
	size = sizeof(pidfd);
	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size)) {
		if (errno != ENOPROTOOPT)
			return -errno;
		log_verbose("process %d is looked up by its number: the kernel has no SO_PEERPIDFD",
			    (int)caller->pid);
		pidfd = pidfd_open(caller->pid, 0);
	}
	return pidfd < 0 ? -errno : pidfd;
}

int caller_owns(const struct ucred *caller, int pidfd, uint32_t *tgid, struct error *err)
{
	const pid_t pid = pids_of(pidfd);
	bool is_theirs, has_begun;

	if (!pid)
		return error_set(err, "the command has ended, or is in a pid namespace that the "
				      "service does not see");
	*tgid = (uint32_t)pid;
	is_theirs = is_own(caller, *tgid);
	has_begun = procfs_has_executed(pid);
	/* Asked again at the end: then it is this process that was looked at. */
	if (!is_theirs || pids_of(pidfd) != pid)
		return error_set(
			err,
			"process %d is not yours: it must run with your user and group alone, "
			"without capabilities, in the service's user namespace",
			(int)pid);
	if (has_begun)
		return error_set(err,
				 "process %d runs a program already: a command is served from its "
				 "exec on",
				 (int)pid);
	return 0;
}
