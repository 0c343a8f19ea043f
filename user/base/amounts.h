/* SPDX-License-Identifier: GPL-2.0-only */
/* amounts.h - arithmetic of amounts that never fall below 0. */
#ifndef QPROF_AMOUNTS_H
#define QPROF_AMOUNTS_H

#include <stdint.h>

static inline void raise_to(uint64_t *value, uint64_t other)
{
	if (other > *value)
		*value = other;
}

static inline uint64_t smaller_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t larger_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns how much an amount has grown, or 0 if it was read too late to have grown. */
static inline uint64_t since(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

#endif
