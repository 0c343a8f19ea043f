/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * procfs.h - what /proc says of a process: when it started, what it runs, maps and has open; and
 * of the machine's memory.
 * Functions that return ssize_t return how many bytes they stored, or -errno.
 */
#ifndef QPROF_PROCFS_H
#define QPROF_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

/* Returns 0 if pid is a process that can be profiled, else -1 and *err says why not. */
int procfs_check_target(pid_t pid, struct error *err);

/* Returns true if pid is still the process that started then (CLOCK_BOOTTIME), not another. */
bool procfs_is_still(pid_t pid, uint64_t started_ns);
/* Returns true if that process has given its memory back: it is a zombie, or gone. */
bool procfs_has_ended(pid_t pid, uint64_t started_ns);
/* Returns true if it has memory: it does not exit yet. */
bool procfs_has_memory(pid_t pid, uint64_t started_ns);
/* Returns true if we have what it takes to load BPF programs, as far as capabilities tell. */
bool procfs_may_load(void);

/* Returns true if it runs a program that it has executed itself, not its parent's. */
bool procfs_has_executed(pid_t pid);

/* Returns true if it ignores that signal. */
bool procfs_ignores(pid_t pid, int signal);

/* Stores the path of its program, as the process sees it, and a NUL that is not counted. */
ssize_t procfs_executable(pid_t pid, char *path, size_t size);

/* Stores the argv of a process, NUL-separated, at most size bytes. */
ssize_t procfs_cmdline(pid_t pid, char *buffer, size_t size);
/* Likewise its variables, as they were when it executed its program. */
ssize_t procfs_environ(pid_t pid, char *buffer, size_t size);

/* Memory of the machine, in bytes. */
struct procfs_memory {
	uint64_t total, available;
	/* What is promised to all, and how much may be where vm.overcommit_memory is 2; 0: the
	 * kernel does not say. */
	uint64_t committed, commit_limit;
};
/* Returns 0, or -errno. */
int procfs_memory(struct procfs_memory *memory);

/* Returns how many mappings a process may have, 0 if the kernel does not say. */
uint32_t procfs_max_mappings(void);

/* A file that a process has mapped. */
struct procfs_mapping {
	uint64_t start, end;
	uint64_t offset;	/* of the file, at start */
	uint64_t device, inode; /* identify the file; stat(2) may say something else */
	const char *path;	/* as the process sees it; may be gone, or another file's by now */
};

/* m is NULL for a mapping that was skipped, so that a visitor whose time is up can end the walk. */
typedef int (*procfs_visit_fn)(void *context, const struct procfs_mapping *m);

/*
 * Calls visit for each executable mapping of a file in pid, until it returns other than 0. Returns
 * that, or 0, or -errno.
 */
int procfs_each_executable(pid_t pid, procfs_visit_fn visit, void *context);
/* The same for each mapping of a file, executable or not. */
int procfs_each_mapped(pid_t pid, procfs_visit_fn visit, void *context);

/*
 * Calls visit with the target of each open descriptor's link, "/a/path" or such as "pipe:[42]",
 * until it returns other than 0. Returns that, or 0, or -errno. Opens none of them.
 */
typedef int (*procfs_open_fn)(void *context, const char *path);
int procfs_each_open(pid_t pid, procfs_open_fn visit, void *context);

/* Returns the number of a thread that is not the first one of the process; 0: there is none. Once
 * the first has ended, /proc/PID shows no memory, and /proc/TID of another does. */
pid_t procfs_other_thread(pid_t pid);

/* Stores the path of a mapped file, as the process sees it, and a NUL that is not counted. */
ssize_t procfs_mapping_path(pid_t pid, uint64_t start, uint64_t end, char *path, size_t size);

/* Finds whose process it is: its real user. Returns 0, or -errno. */
int procfs_user(pid_t pid, uid_t *uid);

/*
 * Opens a mapped file for reading if it is a regular file, even if it was deleted or is in another
 * mount namespace. Returns the descriptor; -EWOULDBLOCK: somebody holds a write lease on it, for
 * which an open would wait (fcntl(2), F_SETLEASE); or -errno.
 */
int procfs_open_mapping(pid_t pid, uint64_t start, uint64_t end);

#endif
