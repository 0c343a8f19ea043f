/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * points.h - what all curves do with their points: a bounded number of them, in the order of time.
 * A point is a struct that begins with its time, a uint64_t.
 */
#ifndef QPROF_POINTS_H
#define QPROF_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns how many of the sorted points stay with windows of 2^shift ns; with `move` they are put
 * together. */
typedef size_t (*points_thin_fn)(void *points, size_t n, unsigned int shift, bool move);

void points_sort(void *points, size_t n, size_t size);
/* Thins sorted points to `most`, by windows as narrow as that allows, and no narrower than they
 * were: 2^*shift ns. Returns how many are left. */
size_t points_bound(void *points, size_t n, size_t most, unsigned int *shift, points_thin_fn thin);
/* Leaves those from start_ns to end_ns. Returns how many these are. */
size_t points_cut(void *points, size_t n, size_t size, uint64_t start_ns, uint64_t end_ns);

#endif
