/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capacity.h - how many processes can be tracked at a time, and what the kernel side keeps for the
 * CPUs that they run on: see bpf/parts.bpf.h. That grows with the CPUs that the machine may have,
 * so it has a bound: 16 MiB. Unless somebody asks for more processes, all that the kernel keeps has
 * a bound, too: 64 MiB, with as many processes as there is room for.
 *
 * Example: on 2 CPUs a process takes 48 bytes, and all that are asked for fit. On 512 CPUs it takes
 * 128 bytes, and a block of 268 for each 16 CPUs that it runs on: 16,384 processes have room for
 * 54,776 such groups of CPUs, three each on average.
 */
#ifndef QPROF_CAPACITY_H
#define QPROF_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CAPACITY_BYTES = 16 << 20,
	CAPACITY_KERNEL_BYTES = 64 << 20,
	/* Usual numbers of processes. That of an audit is the kernel's usual pid_max. */
	CAPACITY_RUN = 16384,
	CAPACITY_AUDIT = 32768,
};

struct capacity {
	uint32_t processes;
	uint32_t cpus;	 /* that the machine may have */
	uint32_t groups; /* of WIRE_GROUP_CPUS of them, an even number */
	uint32_t blocks; /* one for each group that a process runs on: as many as processes, or more
			  */
	uint64_t bytes;	 /* of the maps for them */
};

/* Returns what fits: of the processes that are asked for, all, or as many as have one block each.
 */
struct capacity capacity_for(uint32_t processes, uint32_t cpus);

/* The same, and no more than the kernel takes 64 MiB for, all in all, once so many are there. */
struct capacity capacity_within_bound(uint32_t processes, uint32_t cpus);

enum { CAPACITY_TEXT_MAX = 160 };

/* Says it in a line, for people. */
void capacity_say(const struct capacity *c, char text[CAPACITY_TEXT_MAX]);

struct qprof_bpf;

/*
 * Sizes the maps of the BPF side before it is loaded, for so many processes (0: the usual number
 * within the bound), or as many as fit. Says how many these are: with -v, or if they are fewer.
 */
struct capacity capacity_make(struct qprof_bpf *bpf, uint32_t processes, bool audit, uint32_t cpus);

#endif
