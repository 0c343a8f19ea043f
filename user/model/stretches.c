// SPDX-License-Identifier: GPL-2.0-only
#include "model/stretches.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	const struct stretch *p = a, *q = b;
	const int order = strcmp(p->name, q->name);

	return order ? order : (p->start_ns > q->start_ns) - (p->start_ns < q->start_ns);
}

void stretches_of_each(struct stretch *list, const struct profile_phase *phases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		list[i] = (struct stretch){phases[i].name, phases[i].start_ns, phases[i].end_ns};
	qsort(list, n, sizeof(*list), by_name);
}

size_t stretches_find(struct stretch *list, const struct profile_phase *phases, size_t n)
{
	size_t kept = 0;

	stretches_of_each(list, phases, n);
	for (size_t i = 0; i < n; i++) {
		struct stretch *last = kept ? &list[kept - 1] : NULL;

		if (!last || strcmp(last->name, list[i].name) != 0 ||
		    last->end_ns < list[i].start_ns)
			list[kept++] = list[i];
		else if (list[i].end_ns > last->end_ns)
			last->end_ns = list[i].end_ns;
	}
	return kept;
}
