/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rates.h - CPU use and I/O over time. A profile has both at its checkpoints, and if it has a curve
 * some 20 times a second in between. So a rate is a mean between two of these moments.
 */
#ifndef QPROF_RATES_H
#define QPROF_RATES_H

#include "format/recording.h"

struct rate {
	uint64_t start_ns, end_ns;  /* end_ns is greater */
	struct profile_usage usage; /* of the tree, between them */
};

/* Returns whether rates are more than means between checkpoints. */
bool rates_have_curve(const struct recording *r);

/*
 * Returns *n stretches in order of time, without holes, or NULL when out of memory; the caller
 * frees them. A stretch is from moment to moment. Stretches too short for a rate are joined, so
 * that the run has at most `most` (at least 1).
 */
struct rate *rates_over_time(const struct recording *r, size_t most, size_t *n);

/* Fills in n stretches of equal length, from the start to the end of the run. Returns 0 or -ENOMEM.
 */
int rates_in_columns(const struct recording *r, struct rate *columns, size_t n);

#endif
