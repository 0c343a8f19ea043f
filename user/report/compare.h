/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compare.h - two sides, old and new, each one run or several repeats, phase by phase.
 *
 * Phases match by name and occurrence: the second "Layer" of the old side is compared with the
 * second "Layer" of the new side. The median of the repeats counts. If the values of the two sides
 * overlap, the difference of their medians is within the spread and breaks no limit.
 */
#ifndef QPROF_COMPARE_H
#define QPROF_COMPARE_H

#include "format/quantities.h"
#include "format/recording.h"
#include "format/touched.h"

enum compare_side { COMPARE_OLD, COMPARE_NEW };

enum { COMPARE_MAX_RUNS = 64 }; /* of a side */

enum compare_metric {
	COMPARE_PEAK, /* bytes: highest RSS of the tree */
	COMPARE_END,  /* bytes: RSS at the end */
	/* Bytes: most of anon + shmem + swap, with what processes may share counted once, and as
	 * a sum over processes; absent without a timeline. */
	COMPARE_NEED_LEAST,
	COMPARE_NEED,
	COMPARE_IO,   /* bytes through calls, read and written */
	COMPARE_TIME, /* ns */
	COMPARE_CPU,  /* ns */
	COMPARE_GPU,  /* bytes: the most that was held on GPUs */
	COMPARE_LATER = COMPARE_GPU,
/* Quantities that are compared by themselves: COMPARE_ and the member of struct profile_usage. A
 * profile of an earlier version does not say them. */
#define COMPARE_METRIC_OWN(member) COMPARE_##member,
#define COMPARE_METRIC_IO(member)
#define COMPARE_METRIC_CPU(member)
#define COMPARE_METRIC_NONE(member)
#define COMPARE_METRIC_TOLD(member)
#define COMPARE_METRIC(member, s, u, w, g, t, c, compared, ...) COMPARE_METRIC_##compared(member)
	USAGE_QUANTITIES(COMPARE_METRIC, ) COMPARE_METRICS,
};

/* A metric's name in options and JSON, its title for people, and its unit. */
struct compare_metric_info {
	const char *name, *title;
	enum quantity_unit unit;
};
extern const struct compare_metric_info compare_metrics[COMPARE_METRICS];
/* Returns whether diff itself has a metric of that name. */
bool compare_is_metric(const char *name);

/* The values of one side. */
struct compare_values {
	size_t n; /* 0: the side has no such phase, or does not say */
	uint64_t median, lowest, highest;
};

/* A phase, or the whole run, on both sides. */
struct compare_subject;

struct comparison;

/* NULL when out of memory. */
struct comparison *comparison_new(void);
void comparison_free(struct comparison *c); /* NULL is fine */
/* Copies what it needs of r. Returns 0, -ENOMEM, or -E2BIG beyond COMPARE_MAX_RUNS of a side. */
int comparison_add(struct comparison *c, enum compare_side side, const struct recording *r);

/* The whole run, and the phases in the order in which they first came. */
const struct compare_subject *comparison_run(const struct comparison *c);
const struct compare_subject *const *comparison_phases(const struct comparison *c, size_t *n);
/* What the programs reported: compare_metrics.h. */
const struct program_metrics *comparison_metrics(const struct comparison *c);
/* What storage was used for: compare_files.h. */
const struct compared_files *comparison_files(const struct comparison *c);
/* Which functions first touched memory, or used CPU time: compare_functions.h. */
const struct compared_functions *comparison_functions(const struct comparison *c,
						      enum touched_what what);
size_t comparison_runs(const struct comparison *c, enum compare_side side);

/* Returns a phase's name; *occurrence is 2 for the second of that name. The whole run: NULL, 0. */
const char *compare_name(const struct compare_subject *subject, unsigned int *occurrence);
/* Returns how many runs of the side have the subject. */
size_t compare_count(const struct compare_subject *subject, enum compare_side side);
struct compare_values compare_values(const struct compare_subject *subject, enum compare_side side,
				     enum compare_metric metric);
/* Returns what n values, which it sorts, come to. */
struct compare_values compare_values_of(uint64_t *list, size_t n);
/* Returns true if a side has repeats and the values of the two sides overlap. */
bool compare_is_within_spread(const struct compare_values *old, const struct compare_values *new);

/*
 * Returns whether the difference is worth telling: at least a hundredth of old, and at least 1 MiB,
 * 10 ms or a count of 1000. Less is noise.
 */
bool compare_is_change(enum compare_metric metric, uint64_t old, uint64_t new);

/* How far new may exceed old: by percent of old, or by an amount. */
struct compare_limit {
	enum compare_metric metric;
	bool is_percent;
	double percent;
	uint64_t amount;
	const char *text;  /* as the user gave it */
	bool is_for_files; /* instead, of what is read from storage of each file */
};

/* Returns whether new exceeds old by more than the limit, and a percentage by more than noise. */
bool compare_breaks(const struct compare_limit *limit, uint64_t old, uint64_t new);

#endif
