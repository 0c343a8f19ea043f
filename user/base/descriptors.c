/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/descriptors.h"

#include <stdlib.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* Example: to keep 5 and 9 closes 0 to 4, 6 to 8, and 10 on. */
void descriptors_close_all_but(int *kept, size_t n)
{
	unsigned int next = 0;

	qsort(kept, n, sizeof(*kept), compare);
	for (size_t i = 0; i < n; i++) {
		if (kept[i] < 0)
			continue;
		if ((unsigned int)kept[i] > next)
			close_range(next, (unsigned int)kept[i] - 1, 0);
		next = (unsigned int)kept[i] + 1;
	}
	close_range(next, ~0u, 0);
}
