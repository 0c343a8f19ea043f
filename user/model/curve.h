/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * curve.h - what the tree has used over time, in a bounded number of points. Checkpoints say it
 * exactly; timers that find the tree running say it in between. So between two checkpoints the
 * points add up to what the checkpoints say, and no amount ever falls.
 */
#ifndef QPROF_CURVE_H
#define QPROF_CURVE_H

#include "model/profile.h"

enum {
	/* Points in memory before they are thinned to PROFILE_MAX_POINTS. */
	CURVE_CAP = 4 * PROFILE_MAX_POINTS,
};

struct curve {
	struct profile_usage_point *points;
	size_t n;
	unsigned int shift; /* points of equal time_ns >> shift are thinned together */
	uint64_t thinned;
	bool has_timers; /* else it has nothing that checkpoints lack */
};

/* With `none` nothing is kept. Returns 0 or -ENOMEM. */
int curve_init(struct curve *c, bool none);
/* Points may come in any order. */
void curve_point(struct curve *c, uint64_t time_ns, const struct profile_usage *usage,
		 bool is_checkpoint);
/* Leaves at most PROFILE_MAX_POINTS from start_ns to end_ns, in order; none without timers. */
void curve_finish(struct curve *c, uint64_t start_ns, uint64_t end_ns);
void curve_free(struct curve *c);

#endif
