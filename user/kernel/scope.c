/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/scope.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/memory_limit.h"

#define PREFIX "qprof-scope-"

enum {
	MAX_GROUPS = 1000, /* of one process id: its number is of another pid namespace, too */
	REMOVE_TRIES =
		100, /* a process is in its cgroup for a moment longer than it is to be seen */
	REMOVE_PAUSE_NS = 5000000,
};

/* ---- Files of a cgroup ------------------------------------------------------------------------
 */

static int open_file(const char *directory, const char *file, int flags)
{
	char name[3 * PATH_MAX];

	snprintf(name, sizeof(name), "%s/%s", directory, file);
	return open(name, flags | O_CLOEXEC);
}

/* Returns 0 or -errno. */
static int write_to(const char *directory, const char *file, const char *text)
{
	const int fd = open_file(directory, file, O_WRONLY);
	const ssize_t len = (ssize_t)strlen(text);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)len) != len)
		err = errno ? -errno : -EIO;
	close(fd);
	return err;
}

/* Whether a file that is a line of words has one: "cpuset cpu io memory\n". */
static bool says(const char *directory, const char *file, const char *word)
{
	const int fd = open_file(directory, file, O_RDONLY);
	char text[4096], *rest = text, *at;
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	while ((at = strsep(&rest, " \n")))
		if (!strcmp(at, word))
			return true;
	return false;
}

/* ---- Groups -----------------------------------------------------------------------------------
 */

/* Returns the descriptor that holds the lock; or -1: another holds it, or it is gone. */
static int lock_group(const char *path)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	/* It may have been removed between the two calls, as one that nobody held. */
	if (fd < 0 || (!flock(fd, LOCK_EX | LOCK_NB) && !faccessat(fd, "cgroup.procs", F_OK, 0)))
		return fd;
	close(fd);
	return -1;
}

/* What a killed qprof-bpf has left. Processes of its command may be in there still. */
static void remove_left(const char *above)
{
	DIR *dir = opendir(above);
	const struct dirent *entry;
	char path[3 * PATH_MAX];

	while (dir && (entry = readdir(dir))) {
		int lock;

		if (strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", above, entry->d_name);
		lock = lock_group(path);
		if (lock < 0)
			continue;
		if (rmdir(path))
			log_verbose("%s is of an earlier run, and stays: %s", path,
				    strerror(errno));
		close(lock);
	}
	if (dir)
		closedir(dir);
}

/* Returns 0 or -errno. */
static int make_group(const char *above, struct scope_group *group)
{
	for (int i = 0; i < MAX_GROUPS; i++) {
		snprintf(group->path, sizeof(group->path), "%.*s/" PREFIX "%d-%d",
			 (int)sizeof(group->path) - 64, above, (int)getpid(), i);
		if (!mkdir(group->path, 0755)) {
			group->lock = lock_group(group->path);
			if (group->lock >= 0)
				return 0;
		} else if (errno != EEXIST) {
			break;
		}
	}
	group->path[0] = '\0';
	return -errno;
}

static void remove_group(struct scope_group *group)
{
	const struct timespec pause = {.tv_nsec = REMOVE_PAUSE_NS};
	int left = REMOVE_TRIES;

	if (!group->path[0])
		return;
	while (rmdir(group->path) && errno == EBUSY && left--)
		nanosleep(&pause, NULL);
	if (left < 0)
		log_info("processes of the command still run in %s, so this cgroup stays: a later "
			 "run with --scope removes it",
			 group->path);
	close(group->lock);
	group->path[0] = '\0';
}

/* ---- The memory controller of cgroup v2 -------------------------------------------------------
 */

static int enable(const char *directory)
{
	return write_to(directory, "cgroup.subtree_control", "+memory");
}

/* Moves us out of the cgroup that is to have no processes. Returns 0 or -errno. */
static int move_out(struct scope *scope)
{
	int err = make_group(scope->above.directory, &scope->own);

	return err ? err : write_to(scope->own.path, "cgroup.procs", "0");
}

static void move_back(struct scope *scope)
{
	if (!scope->own.path[0])
		return;
	write_to(scope->above.directory, "cgroup.subtree_control", "-memory");
	write_to(scope->above.directory, "cgroup.procs", "0");
	remove_group(&scope->own);
}

/* Gives the cgroups below ours memory of their own. Returns 0; or -1 and *err. */
static int give_memory(struct scope *scope, struct error *err)
{
	const char *here = scope->above.directory;
	int code;

	if (!says(here, "cgroup.controllers", "memory"))
		return error_set(
			err,
			"--scope: cgroup %.200s has no memory controller to hand on; whoever "
			"made it can delegate it (systemd: Delegate=memory)",
			scope->above.path);
	if (says(here, "cgroup.subtree_control", "memory"))
		return 0;
	code = enable(here);
	if (code == -EBUSY && !(code = move_out(scope)))
		code = enable(here);
	if (code == -EBUSY)
		return error_set(
			err,
			"--scope: cgroup %.200s has other processes, so cgroup v2 lets none "
			"below it count memory; start it in one of its own: systemd-run "
			"--scope qprof-bpf --scope ...",
			scope->above.path);
	if (code)
		return error_set(err, "--scope: cannot have cgroups below %.200s count memory: %s",
				 scope->above.path, strerror(-code));
	return 0;
}

/* ---- The scope --------------------------------------------------------------------------------
 */

int scope_make(struct scope *scope, struct error *err)
{
	int code;

	memory_cgroup_of((uint32_t)getpid(), &scope->above); /* the root will do */
	if (!scope->above.directory[0])
		return error_set(err,
				 "--scope: the memory cgroup that qprof-bpf is in is not to be "
				 "seen here (/proc/self/cgroup, /proc/self/mountinfo)");
	remove_left(scope->above.directory);
	if (!scope->above.v1 && give_memory(scope, err)) {
		scope_remove(scope);
		return -1;
	}
	code = make_group(scope->above.directory, &scope->command);
	if (!code)
		return 0;
	scope_remove(scope);
	return error_set(err, "--scope: cannot make a cgroup in %.200s: %s", scope->above.directory,
			 strerror(-code));
}

int scope_take(const struct scope *scope, pid_t pid, struct error *err)
{
	char number[32];
	int code;

	snprintf(number, sizeof(number), "%d", (int)pid);
	code = write_to(scope->command.path, "cgroup.procs", number);
	if (!code)
		return 0;
	return error_set(err, "--scope: cannot move the command into %.200s: %s",
			 scope->command.path, strerror(-code));
}

void scope_remove(struct scope *scope)
{
	remove_group(&scope->command);
	move_back(scope);
}
