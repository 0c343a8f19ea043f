/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memory_limit.h - how much memory a process may have: the lowest limit of the memory cgroups that
 * it is in (v1 or v2), as far as our mounts show them, or what the machine has. And how much of it
 * is left.
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

/* A limit, and what is left of it. */
struct memory_room {
	unsigned int index; /* the same at each reading, below MEMORY_ROOMS */
	bool of_process;    /* it is about the address space of one process */
	bool of_cgroup;
	const char *of; /* as above, or "RLIMIT_AS", "RLIMIT_DATA"; valid as long as the limits */
	/*
	 * Page cache of a cgroup, and what the kernel takes for available of the machine, is left:
	 * it goes before anything is refused.
	 */
	uint64_t limit, left;
	uint64_t least; /* that was left so far, if the kernel remembers it, or left */
};

enum { MEMORY_ROOMS = 16 };

/* The memory cgroups of a process, and what is read of them. */
struct memory_limits;

/* Returns NULL when out of memory. */
struct memory_limits *memory_limits_new(uint32_t pid);
void memory_limits_free(struct memory_limits *limits);
/* Reads the limits as they are now, and the rlimits of a process; 0: of none. Returns how many
 * there are. */
size_t memory_limits_read(struct memory_limits *limits, uint32_t pid,
			  struct memory_room rooms[MEMORY_ROOMS]);
/* Whether a process may have less than the machine has. */
bool memory_is_limited(uint32_t pid);
/* Returns the page cache of a cgroup with those below it, by the text of its memory.stat, which is
 * taken apart. Pure. */
uint64_t memory_stat_cache(char *stat);

#endif
