/* SPDX-License-Identifier: GPL-2.0-only */
/* arena.h - memory that is freed all at once: texts, and arrays that grow. */
#ifndef QPROF_ARENA_H
#define QPROF_ARENA_H

#include <stddef.h>

struct arena;

/* NULL when out of memory. */
struct arena *arena_new(void);
/* With everything that came from it. NULL is fine. */
void arena_free(struct arena *a);

/* A copy of len bytes with a NUL behind. NULL when out of memory. */
char *arena_text(struct arena *a, const char *text, size_t len);

/*
 * An array of n elements of size bytes each with room for one more, whose place is zeroed: items
 * (NULL for n of 0), or where it was moved to. NULL when out of memory: items stays as it was.
 */
void *arena_grow(struct arena *a, void *items, size_t n, size_t size);

#endif
