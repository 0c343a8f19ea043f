/* SPDX-License-Identifier: GPL-2.0-only */
/* peak.h - the highest RSS of the tree between two instants, the most that it held on GPUs, and the
 * highest charge of its memory cgroup that a checkpoint saw. */
#ifndef QPROF_PEAK_H
#define QPROF_PEAK_H

#include "base/amounts.h"

struct peak {
	uint64_t rss;
	uint64_t from_ns, to_ns; /* of rss; both included */
	uint64_t charge;	 /* 0: none was seen */
	uint64_t gpu, pinned;	 /* bytes on devices; of the host, pinned for them */
};

static inline void peak_fold(struct peak *into, const struct peak *other)
{
	if (other->rss > into->rss) {
		into->rss = other->rss;
		into->from_ns = other->from_ns;
		into->to_ns = other->to_ns;
	}
	raise_to(&into->charge, other->charge);
	raise_to(&into->gpu, other->gpu);
	raise_to(&into->pinned, other->pinned);
}

#endif
