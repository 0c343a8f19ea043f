/* SPDX-License-Identifier: GPL-2.0-only */
/* procfs.h - what /proc says of a process: when it started, what it runs, maps and has open. */
#ifndef QPROF_PROCFS_H
#define QPROF_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

/* Whether pid is a process that can be profiled. 0, or -1 and *err says why not. */
int procfs_check_target(pid_t pid, struct error *err);

/* Whether pid is the process that started then (CLOCK_BOOTTIME), and not another one by now. */
bool procfs_is_still(pid_t pid, uint64_t started_ns);

/* The path of what it executes, as the process sees it, with a NUL. Its bytes, or -errno. */
ssize_t procfs_executable(pid_t pid, char *path, size_t size);

/* argv of a process, NUL-separated, at most size bytes. How many bytes, or -errno. */
ssize_t procfs_cmdline(pid_t pid, char *buffer, size_t size);

/* A file that a process has mapped. */
struct procfs_mapping {
	uint64_t start, end;
	uint64_t device, inode; /* as the kernel prints them: an identity, not what stat(2) says */
	const char *path;	/* as the process sees it; may be gone, or another file's by now */
};

/* NULL: a mapping that was passed over, so that whoever has no time left can end it. */
typedef int (*procfs_visit_fn)(void *context, const struct procfs_mapping *m);

/*
 * Calls visit for each mapping of pid that is executable and of a file, until it returns other than
 * 0. That, or 0, or -errno.
 */
int procfs_each_executable(pid_t pid, procfs_visit_fn visit, void *context);
/* Likewise each mapping of a file, executable or not. */
int procfs_each_mapped(pid_t pid, procfs_visit_fn visit, void *context);

/*
 * Calls visit with where the link of each open descriptor leads, "/a/path" or such as "pipe:[42]",
 * until it returns other than 0. That, or 0, or -errno. Opens none of them.
 */
typedef int (*procfs_open_fn)(void *context, const char *path);
int procfs_each_open(pid_t pid, procfs_open_fn visit, void *context);

/* Where the file behind a mapping is, as the process sees it, with a NUL. Its bytes, or -errno. */
ssize_t procfs_mapping_path(pid_t pid, uint64_t start, uint64_t end, char *path, size_t size);

/*
 * Opens the file behind a mapping for reading, also if it was deleted or is in another mount
 * namespace, if it is a regular file. The descriptor, or -errno.
 */
int procfs_open_mapping(pid_t pid, uint64_t start, uint64_t end);

#endif
