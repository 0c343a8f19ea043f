/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * random.h - numbers that a seed determines, the same with every libc: an order and an interval
 * can be repeated. SplitMix64 (Steele, Lea and Flood, 2014).
 */
#ifndef QPROF_BENCH_RANDOM_H
#define QPROF_BENCH_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Returns a number below n, which is not 0. */
static inline size_t random_below(uint64_t *state, size_t n)
{
	return (size_t)(((unsigned __int128)random_next(state) * n) >> 64);
}

#endif
