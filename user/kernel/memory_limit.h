/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memory_limit.h - how much memory a process may have: the lowest limit of the memory cgroups that
 * it is in (v1 or v2), as far as our mounts show them, or what the machine has.
 */
#ifndef QPROF_MEMORY_LIMIT_H
#define QPROF_MEMORY_LIMIT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct memory_limit {
	uint64_t bytes;	   /* 0: not known */
	char of[PATH_MAX]; /* "cgroup /user.slice/job"; "machine"; may be no UTF-8 */
};

/* Reads it once: nobody tells when a limit changes. */
void memory_limit_of(uint32_t pid, struct memory_limit *limit);

struct memory_hierarchy {
	char mount[PATH_MAX]; /* where it is mounted */
	char path[PATH_MAX];  /* of the process below that; "": there */
	const char *file;     /* that has the limit of a cgroup */
	bool v1;
};

/* Finds the memory hierarchy of a process, as far as our mounts show it. Returns false if not. */
bool memory_hierarchy_of(uint32_t pid, struct memory_hierarchy *h);

/*
 * Finds the memory hierarchy of a process by the text of its /proc/PID/cgroup and of
 * /proc/self/mountinfo. Returns false if there is none, or it is not to be seen here. Pure.
 */
bool memory_hierarchy_find(FILE *cgroups, FILE *mounts, struct memory_hierarchy *h);

#endif
