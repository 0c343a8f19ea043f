/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/taken.h"

#include <stdlib.h>

#include "base/array.h"
#include "model/stacks.h"

size_t taken_add(struct taken_list *l, const struct taken *is)
{
	struct taken *list = l->n < STACKS_MAX_SAMPLES
				     ? array_reserve(l->list, l->n + 1, &l->room, sizeof(*list))
				     : NULL;

	if (!list)
		return SIZE_MAX;
	l->list = list;
	list[l->n] = *is;
	return l->n++;
}

static int by_time(const void *left, const void *right)
{
	const struct taken *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

void taken_sort(struct taken_list *l)
{
	if (l->n)
		qsort(l->list, l->n, sizeof(*l->list), by_time);
}

uint32_t taken_call(const struct taken_list *l, const struct taken *of)
{
	const struct taken *found = l->n ? bsearch(of, l->list, l->n, sizeof(*of), by_time) : NULL;

	return found ? found->call : STACKS_ROOT;
}
