/* SPDX-License-Identifier: GPL-2.0-only */
/* arena.h - texts and growing arrays that are freed all at once. */
#ifndef QPROF_ARENA_H
#define QPROF_ARENA_H

#include <stddef.h>

struct arena;

/* Returns NULL when out of memory. */
struct arena *arena_new(void);
/* Frees the arena with all that it gave out. NULL is fine. */
void arena_free(struct arena *a);

/* Returns a copy of len bytes, ended by a NUL; or NULL when out of memory. */
char *arena_text(struct arena *a, const char *text, size_t len);

/*
 * Makes room for one more element in an array of n elements of size bytes each, and zeroes it. NULL
 * is an empty array. Returns the array, which may have moved; or NULL when out of memory: then
 * items is unchanged.
 */
void *arena_grow(struct arena *a, void *items, size_t n, size_t size);

#endif
