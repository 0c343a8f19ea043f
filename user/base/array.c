/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 8 };

void *array_reserve(void *array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : FIRST;

	if (n < *cap)
		return array;
	if (more <= n)
		more = n + 1;
	array = reallocarray(array, more, size);
	if (array)
		*cap = more;
	return array;
}

size_t array_rank(const void **largest, size_t n, size_t max, const void *item,
		  bool (*is_larger)(const void *a, const void *b))
{
	size_t at = n;

	while (at && is_larger(item, largest[at - 1]))
		at--;
	if (at == max)
		return n;
	if (n < max)
		n++;
	memmove(&largest[at + 1], &largest[at], (n - at - 1) * sizeof(*largest));
	largest[at] = item;
	return n;
}
