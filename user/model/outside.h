/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * outside.h - the time of a run in which no pair of begin and end is open: before the first,
 * between pairs, after the last. With it the phases that do not overlap add up to the run.
 * Stretches between marks do not count: they overlap pairs. A run without pairs has no such time.
 *
 * Example: import for 1 s, begin A, 2 s, end A, 0.1 s, begin B, 3 s, end B, 0.2 s:
 *   before the first 1 s, between 0.1 s, after the last 0.2 s
 */
#ifndef QPROF_OUTSIDE_H
#define QPROF_OUTSIDE_H

#include "model/profile.h"

/* A tree at an instant, as phases see it. */
struct moment {
	uint64_t time_ns;
	uint64_t rss;
	uint64_t needs; /* anon, shmem and swap */
	uint64_t swap;
	uint64_t gpu; /* on all devices */
	struct profile_sums sums;
	uint64_t window_ns; /* for how long a window was open by then */
	struct profile_usage usage;
	struct profile_charge charge;
};

struct outside {
	struct profile_outside parts[PROFILE_OUTSIDE_PARTS]; /* those without stretches too */
	struct moment from; /* when the stretch that is open began */
	uint64_t peak;	    /* of it */
	bool begun, open, any_pair;
};

/* Takes the highest RSS since the last checkpoint. Comes before outside_step() of a checkpoint. */
void outside_fold(struct outside *o, uint64_t rss);
/* n_pairs: how many pairs are open after the checkpoint. */
void outside_step(struct outside *o, size_t n_pairs, const struct moment *now);
/* Ends the run. The parts that there are come first then. Returns how many. */
size_t outside_finish(struct outside *o, const struct moment *now);

#endif
