/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu_limit.h - how much of the machine's CPUs a process may have: the CPUs that it may run on, and
 * the lowest quota of the cgroups that it is in (v1 or v2), as far as our mounts show them; and for
 * how long the kernel stopped that cgroup.
 */
#ifndef QPROF_CPU_LIMIT_H
#define QPROF_CPU_LIMIT_H

#include "kernel/hierarchy.h"

/* All zero at first, but for the process. */
struct cpu_limit {
	uint32_t pid;
	uint64_t cpus;		      /* 0: not known */
	uint64_t quota_ns, period_ns; /* 0: it has no quota */
	char of[PATH_MAX + 8];	      /* "cgroup /job"; may be no UTF-8 */
	/* Since the first look. Each CPU on which the cgroup had to stop counts for itself, with
	 * however many threads. */
	uint64_t throttled_ns, throttled_periods;

	struct hierarchy hierarchy;
	char cgroups[2 * PATH_MAX];	/* its /proc/PID/cgroup, which that was found by */
	char directory[2 * PATH_MAX];	/* of the cgroup with the quota */
	uint64_t seen_ns, seen_periods; /* what its cpu.stat said */
};

/* Reads it as it is now. If the process is gone: what its cgroup has become. Takes some 0.1 ms. */
void cpu_limit_look(struct cpu_limit *limit);

/* Takes what a cpu.stat says, v1's or v2's. The text is taken apart. Returns false if it says
 * nothing of throttling. Pure. */
bool cpu_limit_stat(char *text, uint64_t *throttled_ns, uint64_t *throttled_periods);

#endif
