/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ranks.h - processes that run the same script, side by side: each phase that several ranks have,
 * with the lowest, the median and the highest of them.
 */
#ifndef QPROF_RANKS_H
#define QPROF_RANKS_H

#include "base/json_writer.h"
#include "format/recording.h"

/* Of a figure of a phase, over the ranks that say it. */
struct rank_figure {
	size_t n;
	uint64_t lowest, median, highest;
	uint32_t lowest_rank, highest_rank;
};

struct rank_phase {
	const char *name;
	unsigned int occurrence;	    /* 2: the second of that name, of each rank */
	size_t n;			    /* ranks that have it */
	struct rank_figure time, cpu, peak; /* of the processes that began it, alone */
	/* The others wait for this one: by what it takes, or by how much it computes while they
	 * do not. */
	bool has_straggler;
	uint32_t straggler;
};

struct ranks {
	uint32_t n; /* different ranks with phases; below 2: no ranks */
	struct rank_phase *phases;
	size_t n_phases;
};

/* Returns 0 or -ENOMEM; ranks_free() must follow. Names are of r. */
int ranks_make(struct ranks *ranks, const struct recording *r);
void ranks_free(struct ranks *ranks);

enum { RANKS_TEXT_MAX = 512 };
/* "Calibration: the others waited for rank 3, which computed 5.1 s; the median is 1.3 s". Returns
 * text (RANKS_TEXT_MAX bytes), or NULL: nobody held up the others. */
char *ranks_sentence(char *text, const struct rank_phase *phase);

/* Members of an object. */
void ranks_json(const struct ranks *ranks, struct json_writer *j);

#endif
