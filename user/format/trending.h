/* SPDX-License-Identifier: GPL-2.0-only */
/* trending.h - the trends of a profile: found in its phases, and said in a sentence. */
#ifndef QPROF_TRENDING_H
#define QPROF_TRENDING_H

#include "base/arena.h"
#include "format/recording.h"
#include "model/trends.h"

/* What a run may have, in bytes; 0: not known. */
struct trending_limits {
	uint64_t memory;
	uint64_t gpu; /* of its only GPU, less what the driver keeps for the run */
};

/*
 * Writes what was found. The list and its texts are the arena's. Returns 0 or -ENOMEM.
 */
int trending_record(const struct trend *found, size_t n_found, const struct trending_limits *limits,
		    struct arena *arena, struct recording_trend **list, size_t *n);

/* Fills in r->trends from its phases and points. Returns 0 or -ENOMEM. */
int recording_find_trends(struct recording *r);

/* Returns false if only RSS is known, of which mapped files may be a part. */
bool trending_knows_needs(const struct recording_trend *trend);

enum { TRENDING_TEXT_MAX = 512 };
/* "Layer # (16 repeats): +10.0 MiB of memory each, 250 MiB after the last; 520 MiB (cgroup /job) at
 * about #43". Returns out. */
char *trending_sentence(char out[TRENDING_TEXT_MAX], const struct recording *r,
			const struct recording_trend *trend);

#endif
