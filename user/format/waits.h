/* SPDX-License-Identifier: GPL-2.0-only */
/* waits.h - whether a run was slow for want of a CPU, of storage or of memory, in a sentence. */
#ifndef QPROF_WAITS_H
#define QPROF_WAITS_H

#include "format/recording.h"

enum { WAITS_TEXT_MAX = 512 };

/*
 * "62 % of the time in which threads could have run they waited for a CPU: 8.1 s, most of it in
 * Calibration": of what most time was lost to. Returns false if that was less than a fifth, or too
 * little to speak of.
 */
bool waits_sentence(char out[WAITS_TEXT_MAX], const struct recording *r);

/* Returns how long threads slept in reclaim: the part that is no CPU time. */
uint64_t waits_reclaim_ns(const struct profile_usage *usage);

#endif
