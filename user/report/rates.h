/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rates.h - CPU use and I/O over time. A profile has both at its checkpoints, so a rate is a mean
 * between two checkpoints.
 */
#ifndef QPROF_RATES_H
#define QPROF_RATES_H

#include "format/recording.h"

struct rate {
	uint64_t start_ns, end_ns;  /* end_ns is greater */
	struct profile_usage usage; /* of the tree, between them */
};

/*
 * Returns *n stretches in order of time, without holes, or NULL when out of memory; the caller
 * frees them. A stretch is from checkpoint to checkpoint. Stretches too short for a rate are
 * joined, so that the run has at most `most` (at least 1).
 */
struct rate *rates_between_steps(const struct recording *r, size_t most, size_t *n);

#endif
