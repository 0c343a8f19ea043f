/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shares.h - where the time of all threads went, in parts that add up to it: four threads that live
 * for a second have four seconds. Without --waits nobody knows of sleeps, and the parts add up to
 * the time in which threads could have run.
 */
#ifndef QPROF_SHARES_H
#define QPROF_SHARES_H

#include "format/recording.h"

/* CPU time in reclaim is reclaim, and in a wait for a GPU it is that. A wait for a CPU that is of a
 * quota is known with --waits. */
enum share {
	SHARE_RAN,
	SHARE_FOR_CPU,
	SHARE_THROTTLED,
	SHARE_STORAGE,
	SHARE_RECLAIM,
	SHARE_GPU,
	SHARE_LOCKS,
	SHARE_SLEPT,
	N_SHARES
};

struct share_words {
	const char *column; /* of a table: "FOR CPU" */
	const char *words;  /* for people: "waiting for a CPU" */
	const char *colour; /* of the palette */
	const char *means;
};
extern const struct share_words share_words[N_SHARES];

/* Returns false if what its threads slept for is not known of the whole phase: with --waits and
 * --window, of what was not all in windows. */
bool shares_known(const struct recording *r, const struct recording_phase *phase);

/* Returns their sum. */
uint64_t shares_of(uint64_t share[N_SHARES], const struct profile_usage *usage);

#endif
