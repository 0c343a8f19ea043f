/* SPDX-License-Identifier: GPL-2.0-only */
/* peak.h - the highest RSS of the tree between two instants, and the highest charge of its memory
 * cgroup that a checkpoint saw. */
#ifndef QPROF_PEAK_H
#define QPROF_PEAK_H

#include "base/amounts.h"

struct peak {
	uint64_t rss;
	uint64_t from_ns, to_ns; /* of rss; both included */
	uint64_t charge;	 /* 0: none was seen */
};

static inline void peak_fold(struct peak *into, const struct peak *other)
{
	uint64_t charge = into->charge;

	raise_to(&charge, other->charge);
	if (other->rss > into->rss)
		*into = *other;
	into->charge = charge;
}

#endif
