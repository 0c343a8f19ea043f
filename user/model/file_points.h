/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * file_points.h - what had been read and written of a file by when.
 *
 * The sums are known before the first use in each step, and where a phase begins or ends: the next
 * record says what they were there. Example: a phase from 10 to 14 s reads 3 MiB, the first of them
 * at 11 s, and nothing is read until the run ends at 60 s:
 *   11 s: 0   14 s: 3 MiB   60 s: 3 MiB
 */
#ifndef QPROF_MODEL_FILE_POINTS_H
#define QPROF_MODEL_FILE_POINTS_H

#include "model/files.h"

/* When phases begin and end, in order of time. */
struct step_ends {
	uint64_t *times;
	size_t n;
};

/* Returns 0 or -ENOMEM. */
int step_ends_find(struct step_ends *ends, const struct profile_phase *phases, size_t n);
void step_ends_free(struct step_ends *ends);

/*
 * told: in order of time. last: the sums at the end of the run. Returns at most
 * PROFILE_MAX_FILE_POINTS points, of which the caller frees the list, and in *n how many; adds to
 * *thinned how many were left out. NULL when out of memory.
 */
struct profile_file_point *file_points_find(const struct file_told *told, size_t n_told,
					    const struct file_told *last,
					    const struct step_ends *ends, size_t *n,
					    uint64_t *thinned);

#endif
