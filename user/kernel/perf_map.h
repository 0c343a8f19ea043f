/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * perf_map.h - the file in which the JIT compilers of a process say what code they make, as perf(1)
 * knows it: /tmp/perf-PID.map, with the process's own number of itself, where it sees /tmp.
 */
#ifndef QPROF_PERF_MAP_H
#define QPROF_PERF_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where it would be. */
struct perf_map {
	pid_t pid, own; /* in /proc, and its own number of itself */
	uint64_t started_ns;
	uid_t user;
	bool is_here; /* it sees the files that we see: they are there when it is gone */
};

/* started_ns: CLOCK_BOOTTIME. Returns 0; or -ESRCH: the process is gone. */
int perf_map_of(struct perf_map *map, pid_t pid, uint64_t started_ns);
/*
 * Returns a descriptor of it: a regular file of the process's user, or of root if all may read it,
 * on a file system that answers by itself, and written since the process began. -ENOENT: it is not
 * there, or not yet; -EPERM: it is there, and is not to be read; or another -errno. Nothing here
 * waits for a file system.
 */
int perf_map_open(const struct perf_map *map);

#endif
