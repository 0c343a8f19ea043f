/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * growth.h - what grows, while it does: when memory that stays behind with each repeat of a phase
 * will have used up what is left.
 *
 * By the same names and the same judgement as trends.h, of memory alone. Bounded, however long a
 * tree runs: it keeps few names, few values of each, which are thinned out, and judges a name the
 * less often the more repeats it has.
 */
#ifndef QPROF_GROWTH_H
#define QPROF_GROWTH_H

#include "model/profile.h"
#include "model/trends.h"

enum {
	GROWTH_NAMES = 32,
	GROWTH_VALUES = 128, /* of a name */
};

struct growth;

/* When memory runs out if it goes on so. */
struct growth_end {
	const char *name; /* with '#' for each number; valid until the next step */
	uint64_t repeats, per_repeat;
	uint64_t at_repeat;
	uint64_t ns; /* until then */
};

/* Returns NULL when out of memory. */
struct growth *growth_new(void);
void growth_free(struct growth *g);
/* Takes a row. If there is no memory for it, a repeat is missing. */
void growth_step(struct growth *g, const struct profile_checkpoint *step);
/*
 * left: bytes until the nearest limit, while the tree holds so much anonymous and shared memory.
 * Returns false if nothing grows, or it takes more repeats than there were: before it is half way
 * there, a sawtooth and a warm-up look the same.
 */
bool growth_ends(const struct growth *g, uint64_t left, uint64_t held, struct growth_end *end);

#endif
