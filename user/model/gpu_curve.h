/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_curve.h - what the tree holds on GPUs over time, in a bounded number of points. Each has the
 * highest since the one before, so no spike is lost, however many are put together.
 */
#ifndef QPROF_GPU_CURVE_H
#define QPROF_GPU_CURVE_H

#include "model/profile.h"

enum {
	/* Points in memory before they are thinned to PROFILE_MAX_POINTS. */
	GPU_CURVE_CAP = 4 * PROFILE_MAX_POINTS,
};

/* Few profiles use a GPU: the points are there from the first on. */
struct gpu_curve {
	struct profile_gpu_point *points;
	size_t n;
	unsigned int shift; /* points of equal time_ns >> shift are thinned together */
	uint64_t thinned;
};

/* Takes a record. Records may come in any order. Returns 0 or -ENOMEM. */
int gpu_curve_point(struct gpu_curve *c, const struct wire_gpu_point *record);
/* Leaves at most PROFILE_MAX_POINTS from start_ns to end_ns, in order. */
void gpu_curve_finish(struct gpu_curve *c, uint64_t start_ns, uint64_t end_ns);
void gpu_curve_free(struct gpu_curve *c);

#endif
