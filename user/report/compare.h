/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compare.h - two sides of profiles, each of one run or of several repeats, phase by phase.
 *
 * Phases are matched by name and occurrence: the second "Layer" of the one side is compared with
 * the second of the other. Of repeats the median counts; where the values of the two sides overlap,
 * a difference of medians is within their spread and breaks no limit.
 */
#ifndef QPROF_COMPARE_H
#define QPROF_COMPARE_H

#include "format/recording.h"

enum compare_side { COMPARE_OLD, COMPARE_NEW };

enum { COMPARE_MAX_RUNS = 64 }; /* of a side */

enum compare_metric {
	COMPARE_PEAK, /* bytes: highest RSS of the tree */
	COMPARE_END,  /* bytes: RSS at the end */
	COMPARE_NEED, /* bytes: most of anon + shmem + swap; absent where a timeline is */
	COMPARE_IO,   /* bytes through calls, read and written */
	COMPARE_TIME, /* ns */
	COMPARE_CPU,  /* ns */
	COMPARE_METRICS,
};

/* What a metric is called in options and JSON, and for people; whether it is of time. */
struct compare_metric_info {
	const char *name, *title;
	bool is_time;
};
extern const struct compare_metric_info compare_metrics[COMPARE_METRICS];

/* The values of one side. */
struct compare_values {
	size_t n; /* 0: it has no such phase, or does not say */
	uint64_t median, lowest, highest;
};

/* A phase, or the whole run, on both sides. */
struct compare_subject;

struct comparison;

/* NULL when out of memory. */
struct comparison *comparison_new(void);
void comparison_free(struct comparison *c); /* NULL is fine */
/* Takes what it needs of r. 0, -ENOMEM, or -E2BIG: more than COMPARE_MAX_RUNS on a side. */
int comparison_add(struct comparison *c, enum compare_side side, const struct recording *r);

/* The whole run; then the phases, in the order in which they first came. */
const struct compare_subject *comparison_run(const struct comparison *c);
const struct compare_subject *const *comparison_phases(const struct comparison *c, size_t *n);
size_t comparison_runs(const struct comparison *c, enum compare_side side);

/* "Layer", and 2 of the second of that name; the whole run: NULL and 0. */
const char *compare_name(const struct compare_subject *subject, unsigned int *occurrence);
/* On how many runs of the side it is. */
size_t compare_count(const struct compare_subject *subject, enum compare_side side);
struct compare_values compare_values(const struct compare_subject *subject, enum compare_side side,
				     enum compare_metric metric);
/* Whether the two sides of it, of which one at least was repeated, overlap. */
bool compare_is_within_spread(const struct compare_values *old, const struct compare_values *new);

/*
 * Whether new is more than old by so much that it is worth telling: by a hundredth at least, and by
 * 1 MiB or 10 ms, below which there is nothing but noise.
 */
bool compare_is_change(enum compare_metric metric, uint64_t old, uint64_t new);

/* How much more there may be: percent of old, or an amount. */
struct compare_limit {
	enum compare_metric metric;
	bool is_percent;
	double percent;
	uint64_t amount;
	const char *text; /* as the user gave it */
};

/* Whether new passes old by more than the limit, and is more than noise. */
bool compare_breaks(const struct compare_limit *limit, uint64_t old, uint64_t new);

#endif
