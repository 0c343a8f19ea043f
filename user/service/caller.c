/* SPDX-License-Identifier: GPL-2.0-only */
#include "service/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/pids.h"
#include "kernel/procfs.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* from 6.5 on */
#endif

#ifndef NS_GET_TGID_FROM_PIDNS
#define NS_GET_TGID_FROM_PIDNS _IOR(0xb7, 0x7, int) /* from 6.11 on */
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

static bool is_in_our(const char *namespace, uint32_t tgid)
{
	char path[64];
	struct stat own, other;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", namespace);
	if (stat(path, &own))
		return false;
	snprintf(path, sizeof(path), "/proc/%u/ns/%s", tgid, namespace);
	return !stat(path, &other) && own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

/* capabilities: those that it may have. */
static bool is_own(const struct ucred *caller, uint64_t capabilities, uint32_t tgid)
{
	struct rights r;

	return read_rights(tgid, &r) && are_all(r.uid, caller->uid) &&
	       are_all(r.gid, caller->gid) && !(r.permitted & ~capabilities) &&
	       is_dumpable(tgid, caller->uid) &&
	       is_in_our("user", tgid); /* in another it may have rights that no number tells */
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

static int is_not_yours(struct error *err, uint32_t pid)
{
	return error_set(err,
			 "process %u is not yours: it must run with your user and group alone, "
			 "without capabilities, in the service's user namespace",
			 pid);
}

int caller_owns(const struct ucred *caller, int pidfd, uint32_t *tgid, struct error *err)
{
	const pid_t pid = pids_of(pidfd);
	bool is_theirs, has_begun;

	if (!pid)
		return error_set(err, "the command has ended, or is in a pid namespace that the "
				      "service does not see");
	*tgid = (uint32_t)pid;
	is_theirs = !caller->uid || is_own(caller, 0, *tgid);
	has_begun = procfs_has_executed(pid);
	/* Asked again at the end: then it is this process that was looked at. */
	if (!is_theirs || pids_of(pidfd) != pid)
		return is_not_yours(err, *tgid);
	if (has_begun)
		return error_set(err,
				 "process %d runs a program already: a command is served from its "
				 "exec on",
				 (int)pid);
	return 0;
}

int caller_asks(const struct ucred *caller, int pidfd, uint32_t *tgid, uint64_t *capabilities,
		struct error *err)
{
	struct rights r;

	*tgid = (uint32_t)pids_of(pidfd);
	if (!*tgid)
		return error_set(err, "who asks has ended, or is in a pid namespace that the "
				      "service does not see");
	*capabilities = !caller->uid && read_rights(*tgid, &r) ? r.permitted : 0;
	return caller_looks_again(caller, *capabilities, pidfd, *tgid, err);
}

/* Returns the number for our system calls; 0: there is no such process; or -1, and *err. */
static int number_of(int asks, uint32_t pid, struct error *err)
{
	const pid_t caller = pids_of(asks);
	int namespace, number;
	char path[64];

	if (caller && is_in_our("pid", (uint32_t)caller))
		return (int)pid;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)caller);
	namespace = open(path, O_RDONLY | O_CLOEXEC);
	if (namespace < 0 || pids_of(asks) != caller) { /* it may be another's by now */
		if (namespace >= 0)
			close(namespace);
		return 0;
	}
	number = ioctl(namespace, NS_GET_TGID_FROM_PIDNS, pid);
	if (number < 0 && errno != ESRCH)
		number = error_set(err,
				   "you are in another pid namespace than the service, and this "
				   "kernel does not say what process %u is called there (Linux "
				   "6.11 does)",
				   pid);
	close(namespace);
	return number == -1 && !err->text[0] ? 0 : number;
}

int caller_opens(const struct ucred *caller, uint64_t capabilities, int asks, uint32_t pid,
		 uint32_t *tgid, struct error *err)
{
	const int number = number_of(asks, pid, err);
	const int pidfd = number > 0 ? pidfd_open(number, 0) : -1;

	if (number < 0)
		return -1;
	*tgid = pidfd >= 0 ? (uint32_t)pids_of(pidfd) : 0;
	if (!*tgid)
		error_set(err, "there is no process %u, or not any more", pid);
	else if (!caller_looks_again(caller, capabilities, pidfd, *tgid, err))
		return pidfd;
	if (pidfd >= 0)
		close(pidfd);
	return -1;
}

int caller_looks_again(const struct ucred *caller, uint64_t capabilities, int pidfd, uint32_t tgid,
		       struct error *err)
{
	const bool sees_all = capabilities & UINT64_C(1) << CAP_SYS_PTRACE;
	const bool is_theirs = sees_all || is_own(caller, capabilities, tgid);

	/* Asked at the end: then it is this process that was looked at. */
	return is_theirs && pids_of(pidfd) == (pid_t)tgid ? 0 : is_not_yours(err, tgid);
}
