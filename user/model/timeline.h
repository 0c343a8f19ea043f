/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * timeline.h - memory of the tree over time, in a bounded number of points. Of points close
 * together the lowest, the highest and those with the most unreclaimable memory stay, as summed and
 * as it is at least; so do the exact peaks of steps and phases.
 */
#ifndef QPROF_TIMELINE_H
#define QPROF_TIMELINE_H

#include "model/peak.h"
#include "model/profile.h"

enum {
	/* Points in memory before they are thinned to PROFILE_MAX_POINTS. */
	TIMELINE_CAP = 4 * PROFILE_MAX_POINTS,
	/* How many of the finished points may be a peak. */
	TIMELINE_MAX_PEAKS = PROFILE_MAX_POINTS / 2,
	TIMELINE_PEAKS_CAP = 2 * TIMELINE_MAX_PEAKS,
};

struct timeline {
	struct profile_point *points;
	size_t n;
	unsigned int shift; /* points of equal time_ns >> shift are thinned together */
	struct peak *peaks; /* of the steps */
	size_t n_peaks;
	unsigned int peaks_shift; /* peaks of equal to_ns >> peaks_shift, too */
	uint64_t thinned;
};

static inline uint64_t point_rss(const struct profile_point *point)
{
	return point->file + point->anon + point->shmem;
}

/* Returns what the kernel cannot take back as it can take file pages: it is in RAM or in swap. */
static inline uint64_t point_need(const struct profile_point *point)
{
	return point->anon + point->shmem + point->swap;
}

/* Returns how much of that there is at least, with nothing counted more than once. */
static inline uint64_t point_least(const struct profile_point *point)
{
	return point_need(point) - point->inherited - point->repeated_shmem;
}

/* With `none` nothing is kept. Returns 0 or -ENOMEM. */
int timeline_init(struct timeline *t, bool none);
void timeline_point(struct timeline *t, const struct profile_point *point);
void timeline_peak(struct timeline *t, const struct peak *peak);
/*
 * Leaves at most PROFILE_MAX_POINTS from start_ns on, in order, with the peaks of the steps and of
 * n phases marked. Sets *overall_ns to the time of the overall peak. Returns 0 or -ENOMEM.
 */
int timeline_finish(struct timeline *t, uint64_t start_ns, const struct peak *phases, size_t n,
		    const struct peak *overall, uint64_t *overall_ns);
void timeline_free(struct timeline *t);

#endif
