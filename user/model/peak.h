/* SPDX-License-Identifier: GPL-2.0-only */
/* peak.h - the highest RSS of the tree between two instants. */
#ifndef QPROF_PEAK_H
#define QPROF_PEAK_H

#include <stdint.h>

struct peak {
	uint64_t rss;
	uint64_t from_ns, to_ns; /* both included */
};

static inline void peak_fold(struct peak *into, const struct peak *other)
{
	if (other->rss > into->rss)
		*into = *other;
}

#endif
