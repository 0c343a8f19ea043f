/* SPDX-License-Identifier: GPL-2.0-only */
/* trending.h - the trends of a profile: found in its phases, and said in a sentence. */
#ifndef QPROF_TRENDING_H
#define QPROF_TRENDING_H

#include "base/arena.h"
#include "format/recording.h"

/* What trends are found in: pairs, or gaps if there is no pair. */
struct trending;

/* memory_limit: of the run, in bytes; 0: not known. Returns NULL when out of memory. */
struct trending *trending_new(uint64_t memory_limit);
void trending_free(struct trending *t);
/*
 * What the tree held at a time, without mapped files; points are in order of time, and come before
 * phases. Phases come in the order in which they began; their names must live until
 * trending_find(). Both return 0 or -ENOMEM.
 */
int trending_point(struct trending *t, uint64_t time_ns, uint64_t needs);
int trending_add(struct trending *t, const struct recording_phase *phase);
/* Finds them; the list and its texts are the arena's. Returns 0 or -ENOMEM. */
int trending_find(struct trending *t, struct arena *arena, struct recording_trend **list,
		  size_t *n);

/* Fills in r->trends from its phases. Returns 0 or -ENOMEM. */
int recording_find_trends(struct recording *r);

/* Returns false if only RSS is known, of which mapped files may be a part. */
bool trending_knows_needs(const struct recording_trend *trend);

enum { TRENDING_TEXT_MAX = 512 };
/* "Layer # (16 repeats): +10.0 MiB of memory each, 250 MiB after the last; 520 MiB (cgroup /job) at
 * about #43". Returns out. */
char *trending_sentence(char out[TRENDING_TEXT_MAX], const struct recording *r,
			const struct recording_trend *trend);

#endif
