/* SPDX-License-Identifier: GPL-2.0-only */
#include "procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PF_KTHREAD = 0x00200000 }; /* linux/sched.h; the ninth field of /proc/PID/stat */

static FILE *open_file(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

/* The number behind a key of /proc/PID/status, or -1. */
static long read_status(pid_t pid, const char *key)
{
	FILE *file = open_file(pid, "status");
	char line[256];
	long value = -1;

	if (!file)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			value = strtol(line + strlen(key), NULL, 10);
	fclose(file);
	return value;
}

/* State and flags of /proc/PID/stat; the name before them may hold anything, also ')'. */
static int read_stat(pid_t pid, char *state, unsigned int *flags)
{
	FILE *file = open_file(pid, "stat");
	char line[1024], *rest;
	size_t n;

	if (!file)
		return -errno;
	n = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[n] = 0;
	rest = strrchr(line, ')');
	if (!rest || sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) != 2)
		return -ESRCH;
	return 0;
}

int procfs_check_target(pid_t pid, struct error *err)
{
	unsigned int flags = 0;
	char state = '?';
	long tgid;

	if (read_stat(pid, &state, &flags))
		return error_set(err, "no process %d: it does not exist or has just exited", pid);
	if (flags & PF_KTHREAD)
		return error_set(
			err,
			"process %d is a kernel thread: it has no memory of its own to profile",
			pid);
	/* A main thread that has called pthread_exit() is a zombie while the others go on. */
	if ((state == 'Z' && read_status(pid, "Threads:") <= 1) || state == 'X')
		return error_set(err,
				 "process %d has exited already (its parent has not waited for it)",
				 pid);
	tgid = read_status(pid, "Tgid:");
	if (tgid > 0 && tgid != pid)
		return error_set(err, "%d is a thread of process %ld: use -p %ld", pid, tgid, tgid);
	return 0;
}

ssize_t procfs_cmdline(pid_t pid, char *buffer, size_t size)
{
	FILE *file = open_file(pid, "cmdline");
	size_t n;

	if (!file)
		return -errno;
	n = fread(buffer, 1, size, file);
	fclose(file);
	return n;
}

/* "start-end perms offset major:minor inode   path"; false for what is no executable file. */
static int parse_mapping(char *line, struct procfs_mapping *m)
{
	unsigned int major, minor;
	int path = 0;
	char perms[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %x:%x %" SCNu64 " %n", &m->start, &m->end,
		   perms, &major, &minor, &m->inode, &path) != 6 ||
	    perms[2] != 'x' || !m->inode)
		return 0;
	m->device = (uint64_t)major << 32 | minor;
	m->path = path ? line + path : "";
	line[strcspn(line, "\n")] = 0;
	return 1;
}

int procfs_each_executable(pid_t pid, int (*visit)(void *context, const struct procfs_mapping *m),
			   void *context)
{
	FILE *file = open_file(pid, "maps");
	struct procfs_mapping m;
	char *line = NULL;
	size_t room = 0;
	int err = 0;

	if (!file)
		return -errno;
	while (!err && getline(&line, &room, file) > 0)
		if (parse_mapping(line, &m))
			err = visit(context, &m);
	free(line);
	fclose(file);
	return err;
}

/* A link straight to the file; following it needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. */
static void link_of(char *path, size_t size, pid_t pid, const struct procfs_mapping *m)
{
	snprintf(path, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->start, m->end);
}

int procfs_stat_mapping(pid_t pid, const struct procfs_mapping *m, struct stat *st)
{
	char path[96];

	link_of(path, sizeof(path), pid, m);
	return stat(path, st) ? -errno : 0;
}

/* By O_PATH first: to open a device for reading may do something to it. */
int procfs_open_mapping(pid_t pid, const struct procfs_mapping *m)
{
	char path[96];
	struct stat st;
	int found, fd;

	link_of(path, sizeof(path), pid, m);
	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0)
		return -errno;
	if (fstat(found, &st) || !S_ISREG(st.st_mode)) {
		close(found);
		return -EINVAL;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(found);
	return fd;
}
