/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * process_timeline.h - memory of each process over time, and what each held when the tree was at
 * its peak.
 *
 * Both follow the points alone. Points are in order among themselves, while records of the other
 * ring may be far ahead: the exit of a process may come before its last points.
 *
 * What a process held at the peak is put aside when it changes for the first time after the peak.
 * So a new peak costs nothing, however many processes there are. Example, with two processes:
 *   point: A has 100, tree 110     epoch 1
 *   point: B has 300, tree 400     epoch 2: both hold what the peak is made of
 *   point: B has  50, tree 150     300 is put aside for B, in epoch 2
 *   the end                        A has not changed since: 100; B: 300
 */
#ifndef QPROF_PROCESS_TIMELINE_H
#define QPROF_PROCESS_TIMELINE_H

#include "model/processes.h"

enum {
	/* Points in memory before they are thinned to PROFILE_MAX_PROCESS_POINTS. */
	PROCESS_TIMELINE_CAP = 4 * PROFILE_MAX_PROCESS_POINTS,
	/* Processes whose lowest and highest point are sure to stay. */
	PROCESS_TIMELINE_MAX_PROCESSES = PROFILE_MAX_PROCESS_POINTS / 4,
};

struct process_timeline {
	struct profile_process_point *points;
	size_t n;
	unsigned int shift; /* points of equal time_ns >> shift are thinned together */
	uint64_t thinned;

	uint64_t peak;			    /* in pages: the highest that points told of */
	uint32_t epoch;			    /* counts new peaks */
	struct profile_point at_peak, last; /* the tree at the peak, and at the last point */
	uint64_t largest_file;		    /* of one process, at the peak */
	uint64_t largest_rss;		    /* the same */
	struct profile_share *shares;
	size_t n_shares;
};

/* With `none` neither points nor shares are kept. Returns 0 or -ENOMEM. */
int process_timeline_init(struct process_timeline *t, bool none);
/* Notes what the process has when it is first heard of, unless its points have said so already. */
void process_timeline_joined(struct process *process);
/* `process` is the point's, or NULL if that is not known. Returns 0 or -ENOMEM. */
int process_timeline_point(struct process_timeline *t, const struct processes *ps,
			   struct process *process, const struct wire_point *wire,
			   const struct profile_point *tree, uint64_t page_size);
/* Leaves at most PROFILE_MAX_PROCESS_POINTS, in order, and the shares at the peak. Returns 0 or
 * -ENOMEM. */
int process_timeline_finish(struct process_timeline *t, const struct processes *ps);
void process_timeline_free(struct process_timeline *t);

#endif
