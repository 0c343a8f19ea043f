/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rates.h - CPU use and I/O over time. A profile has both at its checkpoints, so what is between
 * two of them is a mean.
 */
#ifndef QPROF_RATES_H
#define QPROF_RATES_H

#include "format/recording.h"

struct rate {
	uint64_t start_ns, end_ns;  /* end_ns is more */
	struct profile_usage usage; /* of the tree in between */
};

/*
 * *n of them without a hole, in order of time: stretches from checkpoint to checkpoint, those that
 * are too short for a rate joined to others, so that there are at most `most` (at least 1) over
 * the run. The caller frees them. NULL when out of memory.
 */
struct rate *rates_between_steps(const struct recording *r, size_t most, size_t *n);

#endif
