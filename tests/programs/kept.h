/* SPDX-License-Identifier: GPL-2.0-only */
/* kept.h - for programs whose functions are looked for by name in stacks. */
#ifndef KEPT_H
#define KEPT_H

#include <sys/mman.h>

#include "truth.h"

/* Kept as a function of its own name, and called by a call. */
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif

/* What follows a call keeps the call from becoming a jump. */
static volatile size_t done;

/* Returns memory that nobody has touched, in small pages. */
static inline char *map(size_t size)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(at != MAP_FAILED && !madvise(at, size, MADV_NOHUGEPAGE));
	return at;
}

#endif
