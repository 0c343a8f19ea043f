/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/pids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* PROC_PID_INIT_INO of linux/proc_ns.h, the same since 3.8. */
enum { INITIAL_NAMESPACE = 0xEFFFFFFCu, MAX_LEVELS = 33 }; /* MAX_PID_NS_LEVEL, and the initial */

/* Reads the numbers behind a key in a file of /proc. Returns how many, 0 without such a line. */
static size_t read_numbers(const char *path, const char *key, pid_t numbers[MAX_LEVELS])
{
	FILE *file = fopen(path, "re");
	char line[1024], *at, *end;
	size_t n = 0;

	if (!file)
		return 0;
	while (!n && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		for (at = line + strlen(key); n < MAX_LEVELS; at = end) {
			numbers[n] = (pid_t)strtol(at, &end, 10);
			if (end == at)
				break;
			n++;
		}
	}
	fclose(file);
	return n;
}

/*
 * Reads the numbers of a process, from the namespace of /proc inwards. Returns how many; 0 if the
 * kernel has no pid namespaces.
 */
static size_t numbers_of(pid_t pid, pid_t numbers[MAX_LEVELS])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return read_numbers(path, "NSpid:", numbers);
}

pid_t pids_innermost(pid_t pid)
{
	pid_t numbers[MAX_LEVELS];
	const size_t n = numbers_of(pid, numbers);

	return n ? numbers[n - 1] : 0;
}

pid_t pids_self(void)
{
	char number[16];
	ssize_t n = readlink("/proc/self", number, sizeof(number) - 1);

	if (n < 0)
		return 0;
	number[n] = '\0';
	return (pid_t)strtol(number, NULL, 10);
}

pid_t pids_of(int pidfd)
{
	pid_t numbers[MAX_LEVELS];
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	/* The kernel says -1 if it is gone, 0 if it is not in that namespace. */
	return read_numbers(path, "Pid:", numbers) && numbers[0] > 0 ? numbers[0] : 0;
}

/* Returns at which place among the numbers of a process that of our own namespace is. */
static size_t own_level(void)
{
	pid_t numbers[MAX_LEVELS];
	const size_t n = numbers_of(pids_self(), numbers);

	return n ? n - 1 : 0;
}

pid_t pids_number(pid_t pid)
{
	const size_t level = own_level();
	pid_t numbers[MAX_LEVELS];

	if (!level)
		return pid;
	return numbers_of(pid, numbers) > level ? numbers[level] : 0;
}

int pids_open(pid_t pid)
{
	const size_t level = own_level();
	pid_t numbers[MAX_LEVELS];
	size_t n;
	int fd;

	if (!level) {
		fd = pidfd_open(pid, 0);
		return fd < 0 ? -errno : fd;
	}
	n = numbers_of(pid, numbers);
	if (!n)
		return -ESRCH;
	if (n <= level)
		return -EXDEV;
	/* It may be in a namespace beside ours, which has numbers at that level, too. */
	fd = pidfd_open(numbers[level], 0);
	if (fd < 0)
		return errno == ESRCH ? -EXDEV : -errno;
	if (pids_of(fd) == pid)
		return fd;
	close(fd);
	return -EXDEV;
}

static int no_proc(struct error *err)
{
	if (access("/proc/version", R_OK))
		return error_set(err, "/proc is not mounted: mount it (mount -t proc proc /proc)");
	return error_set(err, "/proc is of a pid namespace that qprof-bpf is not in: mount one of "
			      "its own (mount -t proc proc /proc), or enter that namespace, too "
			      "(nsenter -p)");
}

int pids_look(struct pids_view *view, struct error *err)
{
	struct stat st;

	*view = (struct pids_view){.self = pids_self()};
	if (!view->self || stat("/proc/self/ns/pid", &st))
		return no_proc(err);
	view->nested = st.st_ino != INITIAL_NAMESPACE;
	view->above = own_level();
	return 0;
}
