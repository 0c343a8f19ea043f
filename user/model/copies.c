/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/copies.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/array.h"

static void forget_from(struct copies *copies, uint64_t time_ns)
{
	if (!copies->unknown_ns || time_ns < copies->unknown_ns)
		copies->unknown_ns = time_ns ? time_ns : 1;
}

void copies_changed(struct copies *copies, uint64_t time_ns)
{
	uint64_t *changes = NULL;

	if (copies->n_changes < COPIES_MAX_TIMES)
		changes = array_reserve(copies->changes, copies->n_changes, &copies->changes_cap,
					sizeof(*changes));
	if (!changes) {
		forget_from(copies, time_ns);
		return;
	}
	copies->changes = changes;
	changes[copies->n_changes++] = time_ns;
	copies->is_sorted = false;
}

int copies_seen(struct copies *copies, const struct copies_seen *look)
{
	void *looks = copies->n < COPIES_MAX_TIMES
			      ? array_reserve(copies->looks, copies->n, &copies->cap, sizeof(*look))
			      : NULL;

	if (!looks)
		return -ENOMEM;
	copies->looks = looks;
	copies->looks[copies->n] = *look;
	return (int)copies->n++;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return (*p > *q) - (*p < *q);
}

static bool has_changed(struct copies *copies, uint64_t after_ns, uint64_t until_ns)
{
	size_t low = 0, high = copies->n_changes;

	if (copies->unknown_ns && until_ns >= copies->unknown_ns)
		return true;
	if (!copies->is_sorted)
		array_sort(copies->changes, copies->n_changes, sizeof(*copies->changes), by_time);
	copies->is_sorted = true;
	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (copies->changes[middle] > after_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low < copies->n_changes && copies->changes[low] <= until_ns;
}

int copies_find(struct copies *copies, uint64_t end_ns)
{
	size_t low = 0, high = copies->n;
	const struct copies_seen *look;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (copies->looks[middle].began_ns >= end_ns)
			high = middle;
		else
			low = middle + 1;
	}
	look = low < copies->n ? &copies->looks[low] : NULL;
	if (!look || look->began_ns - end_ns > look->age_ns ||
	    has_changed(copies, end_ns, look->ended_ns))
		return COPIES_NO_LOOK;
	return (int)low;
}

void copies_free(struct copies *copies)
{
	free(copies->looks);
	free(copies->changes);
}
