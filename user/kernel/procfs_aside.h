/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * procfs_aside.h - what is known of the memory map of a process, read by a child with a deadline.
 *
 * To read a process's command line, its variables or its mappings, or to open what it has mapped,
 * the kernel takes the lock of its memory map. There are ways to hold that for ever: a process maps
 * a file on FUSE, and the kernel waits for the file system meanwhile. Whoever waits for the lock
 * can only be killed. So a child asks, and goes on to live while it answers in time.
 *
 * A user whose process took too long is in for a shorter time (patience.h), and for none once so
 * much time was lost in all.
 *
 * For the main thread alone.
 */
#ifndef QPROF_PROCFS_ASIDE_H
#define QPROF_PROCFS_ASIDE_H

#include "kernel/engine.h"
#include "kernel/procfs.h"

/*
 * From now on the child can tell mappings as the engine does; and lost() is called each time that a
 * process was not read, with its user.
 */
typedef void (*procfs_aside_lost_fn)(void *context, uid_t uid);
void procfs_aside_begin(struct engine *e, procfs_aside_lost_fn lost, void *context);
/* Ends the child, if there is one, and forgets the engine. Comes before engine_free(). */
void procfs_aside_end(void);

/* Returns how much CPU time answers have taken the child so far. */
uint64_t procfs_aside_cpu_ns(void);

/* Each as its namesake in procfs.h; or returns -ETIMEDOUT: the lock was not to be had in time. */
ssize_t procfs_aside_cmdline(pid_t pid, char *buffer, size_t size);
ssize_t procfs_aside_environ(pid_t pid, char *buffer, size_t size);
int procfs_aside_each_executable(pid_t pid, procfs_visit_fn visit, void *context);
int procfs_aside_each_mapped(pid_t pid, procfs_visit_fn visit, void *context);
int procfs_aside_mapping_offset(pid_t pid, uint64_t start, uint64_t *offset);
ssize_t procfs_aside_mapping_path(pid_t pid, uint64_t start, uint64_t end, char *path, size_t size);
int procfs_aside_open_mapping(pid_t pid, uint64_t start, uint64_t end);

/* As engine_tell_mappings() of each executable mapping, or -ETIMEDOUT. */
int procfs_aside_tell_mappings(pid_t pid, engine_mapping_fn tell, void *context);

#endif
