/* SPDX-License-Identifier: GPL-2.0-only */
/* waits.h - whether a run was slow for want of a CPU, storage, memory or a GPU, in a sentence. */
#ifndef QPROF_WAITS_H
#define QPROF_WAITS_H

#include "format/recording.h"

enum { WAITS_TEXT_MAX = 1024 };

/*
 * "62 % of the time in which threads could have run they waited for a CPU: 8.1 s, most of it in
 * Calibration, where 16.0 threads shared 2.0 CPUs (quota of cgroup /job: 200 %). Try
 * OMP_NUM_THREADS=2": of what most time was lost to, and then ". 31 % they freed memory, since
 * there was none left: 2.3 s" of each other cause that is as much as a fifth. Returns false if
 * none is, or too little to speak of.
 */
bool waits_sentence(char out[WAITS_TEXT_MAX], const struct recording *r);
/* The same of a phase, without its name. */
bool waits_phase_sentence(char out[WAITS_TEXT_MAX], const struct recording *r,
			  const struct recording_phase *phase);

/* Returns how long threads slept in reclaim: the part that is no CPU time. */
uint64_t waits_reclaim_ns(const struct profile_usage *usage);

#endif
