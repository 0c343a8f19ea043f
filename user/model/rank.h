/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rank.h - which part a process has among several that run the same script: torchrun, accelerate,
 * mpirun and srun say it in the environment.
 */
#ifndef QPROF_RANK_H
#define QPROF_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANK_MAX = 1 << 20 };

struct rank {
	bool is_known;
	uint32_t rank;	/* below world */
	uint32_t world; /* how many there are, 2 at least */
	bool has_local;
	uint32_t local; /* on this machine */
};

/*
 * Reads the variables of a process: texts, each ended by NUL, in len bytes of which the last may be
 * cut. They may say anything: what is no rank of several is none.
 */
struct rank rank_of(const char *environment, size_t len);

#endif
