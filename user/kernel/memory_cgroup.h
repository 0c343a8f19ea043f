/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memory_cgroup.h - the memory cgroup of a process, as user space sees it: its directory, and what
 * its charge is made of. What it is charged in all is read in the kernel (bpf/memcg.bpf.h).
 */
#ifndef QPROF_MEMORY_CGROUP_H
#define QPROF_MEMORY_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct memory_cgroup {
	char directory[2 * PATH_MAX];
	char path[PATH_MAX]; /* of it below the mount: "/job"; may be no UTF-8 */
	bool v1;
};

/* In bytes. Together they are most of the charge. */
struct memory_parts {
	uint64_t anon, shmem, file, kernel;
};

/* Returns false if no cgroup is to be seen, or if it is the root: nothing is charged to that. */
bool memory_cgroup_of(uint32_t pid, struct memory_cgroup *cgroup);

/*
 * Reads what the kernel says it is made of, which costs some 0.1 ms, and more on a machine with
 * many CPUs. The kernel adds up the parts of the CPUs when it gets to it, so they lag behind the
 * charge. Returns false if they cannot be read.
 */
bool memory_cgroup_parts(const struct memory_cgroup *cgroup, struct memory_parts *parts);

#endif
