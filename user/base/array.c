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

/* ---- Sorting ---- */

struct sorting {
	size_t size;
	int (*order)(const void *a, const void *b);
};

static void swap_bytes(char *a, char *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/* Makes "left right" into "right left": exchanges blocks of the shorter part's length. */
static void rotate(char *items, size_t left, size_t right, size_t size)
{
	while (left && right) {
		const size_t n = left < right ? left : right;

		swap_bytes(items + (left - n) * size, items + left * size, n * size);
		if (left > right) {
			left -= n;
		} else {
			items += n * size;
			right -= n;
		}
	}
}

/* Returns how many of n sorted items come before `item`; with `equal`, or are equal to it. */
static size_t count_before(const struct sorting *s, const char *items, size_t n, const char *item,
			   bool equal)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const int order = s->order(items + middle * s->size, item);

		if (order < 0 || (equal && order == 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Merges two sorted parts that lie side by side. Cuts the longer part in its middle and the other
 * where that item belongs, brings the two inner pieces past each other, and merges either side.
 * Example: 1 4 6 8 | 2 5 is cut as 1 4 / 6 8 | 2 5 / and becomes 1 4 | 2 5, 6 8 |.
 */
static void merge(const struct sorting *s, char *items, size_t left, size_t right)
{
	char *middle = items + left * s->size;
	size_t left_cut, right_cut;

	if (!left || !right || s->order(middle - s->size, middle) <= 0)
		return;
	if (left + right == 2) {
		swap_bytes(items, middle, s->size);
		return;
	}
	if (left > right) {
		left_cut = left / 2;
		right_cut = count_before(s, middle, right, items + left_cut * s->size, false);
	} else {
		right_cut = right / 2;
		left_cut = count_before(s, items, left, middle + right_cut * s->size, true);
	}
	rotate(items + left_cut * s->size, left - left_cut, right_cut, s->size);
	merge(s, items, left_cut, right_cut);
	merge(s, items + (left_cut + right_cut) * s->size, left - left_cut, right - right_cut);
}

static void sort(const struct sorting *s, char *items, size_t n)
{
	const size_t half = n / 2;

	if (n < 2)
		return;
	sort(s, items, half);
	sort(s, items + half * s->size, n - half);
	merge(s, items, half, n - half);
}

void array_sort(void *items, size_t n, size_t size, int (*order)(const void *, const void *))
{
	const struct sorting s = {size, order};

	sort(&s, items, n);
}
