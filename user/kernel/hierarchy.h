/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hierarchy.h - where the cgroup of a process is for a controller, "memory" or "cpu": in a
 * hierarchy of cgroup v1 or in that of v2, as far as our mounts show it.
 */
#ifndef QPROF_HIERARCHY_H
#define QPROF_HIERARCHY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct hierarchy {
	char mount[PATH_MAX]; /* where it is mounted */
	char path[PATH_MAX];  /* of the process below that; "": there */
	bool v1;
};

/* Gets the path of a cgroup below the mount. */
typedef void (*hierarchy_each_fn)(void *context, const struct hierarchy *h, const char *path);

/* Returns false if there is none, or it is not to be seen here. */
bool hierarchy_of(uint32_t pid, const char *controller, struct hierarchy *h);

/* The same by the text of the process's /proc/PID/cgroup and of /proc/self/mountinfo. Pure. */
bool hierarchy_find(FILE *cgroups, FILE *mounts, const char *controller, struct hierarchy *h);

/*
 * Calls each() for the process's cgroup and those above it, the innermost first: each is within the
 * limits of all of them. In a container the mount itself is a cgroup with a limit, perhaps: its
 * path is "".
 */
void hierarchy_upwards(const struct hierarchy *h, hierarchy_each_fn each, void *context);

/*
 * A process may be moved, as by the shell that starts it. Reads its /proc/PID/cgroup into the text
 * and returns true if it is another than that had been; false if the process is gone,
 * or about to be.
 */
bool hierarchy_moved(uint32_t pid, char *text, size_t size);

#endif
