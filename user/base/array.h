/* SPDX-License-Identifier: GPL-2.0-only */
/* array.h - arrays that grow as elements are added, their order, and the few largest of many. */
#ifndef QPROF_ARRAY_H
#define QPROF_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes room for an element at index n of an array that has room for *cap elements of size bytes
 * each; NULL is an array without room. Grows to twice the room, so that adding stays cheap. Returns
 * the array, which may have moved; or NULL when out of memory: then the array is unchanged.
 */
void *array_reserve(void *array, size_t n, size_t *cap, size_t size);

/*
 * Ranks an item among the n largest so far, largest first, of which at most max are kept. Equal
 * items stay in the order they came in. Returns how many are kept now.
 */
size_t array_rank(const void **largest, size_t n, size_t max, const void *item,
		  bool (*is_larger)(const void *a, const void *b));

/*
 * Sorts n items of size bytes each in place. Unlike qsort(), it leaves equal items in the order
 * they came in, with every libc and when memory is short. Items that are in order already cost one
 * look each.
 */
void array_sort(void *items, size_t n, size_t size, int (*order)(const void *, const void *));

#endif
