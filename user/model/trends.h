/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trends.h - what grows from one repeat of a phase to the next: memory that stays behind with each
 * layer, say. Pure; a look at what is there already.
 *
 * Phases repeat if their names differ in numbers only: "Layer 7" is the 8th of "Layer #". Of names
 * such as "blk.7.attn_q.weight" all that follow one another with the same "blk.7" are one repeat of
 * "blk.#", and are also looked at as "blk.#.attn_q.weight".
 *
 * It says "grows" only where that is hard to doubt, and nothing of a sawtooth, a warm-up, a single
 * step or noise. It does not say why: a cache that is to grow does, too.
 */
#ifndef QPROF_TRENDS_H
#define QPROF_TRENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/usage.h"

enum {
	TREND_LEAST_REPEATS = 5,
	TREND_NAME_MAX = 128, /* bytes, with the NUL; longer names are cut */
	TRENDS_MAX = 64,      /* names with a trend; the largest growth of memory first */
};

/* What may grow. */
enum trend_figure {
	TREND_MEMORY, /* RSS at the end of the repeat, bytes */
	TREND_NEEDS,  /* anon, shmem and swap at its end, bytes; NAN: not known */
	TREND_SWAP,   /* of that: what is in swap; NAN: not known */
	TREND_PEAK,   /* peak RSS in it, bytes */
	TREND_TIME,   /* ns */
	TREND_READ,   /* bytes, through calls */
	TREND_WRITTEN,
	TREND_STORAGE_READ, /* bytes */
	TREND_STORAGE_WRITTEN,
	TREND_GPU,	/* what the tree has allocated on GPUs at its end, bytes */
	TREND_GPU_PEAK, /* in it */
	TREND_FIGURES,
};

/* A phase that has ended. */
struct trend_phase {
	const char *name;
	bool is_pair;
	double figures[TREND_FIGURES];
};

struct trend {
	char name[TREND_NAME_MAX]; /* with '#' for each number */
	uint64_t repeats;
	bool grows[TREND_FIGURES];
	double per_repeat[TREND_FIGURES]; /* valid if it grows: Theil-Sen slope */
	double last[TREND_FIGURES];	  /* of the last repeat */
};

/* Looks at a series. Returns whether it grows, and the slope per item. n may be any. */
bool trend_grows(const double *values, size_t n, enum trend_figure figure, double *per_item);

/* Writes a name, or the first len bytes of it, with '#' for each number. */
void trend_pattern(char out[TREND_NAME_MAX], const char *name, size_t len);
/* Returns the length of "blk.7" in "blk.7.attn_q.weight", or 0: such a name has no parts. */
size_t trend_part(const char *name);
/* Whether that is "blk.#.attn_q.weight" and "blk.#". */
bool trend_is_part(const char *name, const char *whole);

/* What repeats, by name; all zero at first. */
struct trends {
	struct trend_group *all;
	bool any_pair; /* gaps do not count */
};

/* Sets the figures of I/O. */
void trend_used(struct trend_phase *phase, const struct profile_usage *used);
/* Phases come in the order in which they began. Returns 0 or -ENOMEM. */
int trends_add(struct trends *t, const struct trend_phase *phase);
/*
 * Finds the names of which something grows. Returns 0; or -ENOMEM, and *found is NULL. *found is to
 * be freed.
 */
int trends_find(const struct trends *t, struct trend **found, size_t *n_found);
void trends_free(struct trends *t);

#endif
