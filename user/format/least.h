/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * least.h - the bounds of a sum over processes, in words: it has pages that they share more than
 * once, so what is there is between what is there at least and the sum.
 */
#ifndef QPROF_LEAST_H
#define QPROF_LEAST_H

#include <stdbool.h>

#include "format/recording.h"

enum { LEAST_WORDS_MAX = 320 };

/*
 * Says what a peak is at least, and how much may be in its sum more than once; in_full: of what
 * kinds. Returns false, and writes nothing, if that is less than a hundredth of the peak, or not
 * known.
 */
bool least_of_peak(char out[LEAST_WORDS_MAX], const struct recording_peak *peak, uint64_t rss,
		   bool in_full);

/*
 * Says what a run needs: "Needs at least 444 MiB, at most 1.25 GiB (anon, ...)", and why the two
 * differ. is_killed: it might have needed more.
 */
void least_of_need(char out[LEAST_WORDS_MAX], const struct recording_need *need, bool is_killed);

/* Returns whether the two bounds are known and differ, as people see them. */
bool need_has_bounds(const struct recording_need *need);

#endif
