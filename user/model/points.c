/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/points.h"

#include <string.h>

#include "base/array.h"

static uint64_t time_of(const void *point)
{
	return *(const uint64_t *)point;
}

static int by_time(const void *a, const void *b)
{
	return (time_of(a) > time_of(b)) - (time_of(a) < time_of(b));
}

void points_sort(void *points, size_t n, size_t size)
{
	array_sort(points, n, size, by_time);
}

size_t points_bound(void *points, size_t n, size_t most, unsigned int *shift, points_thin_fn thin)
{
	if (n <= most)
		return n;
	while (*shift < 63 && thin(points, n, *shift, false) > most)
		(*shift)++;
	return thin(points, n, *shift, true);
}

size_t points_cut(void *points, size_t n, size_t size, uint64_t start_ns, uint64_t end_ns)
{
	char *at = points, *kept = points;

	for (size_t i = 0; i < n; i++, at += size) {
		if (time_of(at) < start_ns || time_of(at) > end_ns)
			continue;
		memmove(kept, at, size);
		kept += size;
	}
	return (size_t)(kept - (char *)points) / size;
}
