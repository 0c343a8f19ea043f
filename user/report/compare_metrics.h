/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compare_metrics.h - what programs reported of themselves, on both sides, by name: the value of a
 * metric of the whole run, the last value of a metric of rows.
 *
 * A name that diff has for something itself, such as "time", is followed by FIELD_AGAIN here: "time
 * (metric)".
 */
#ifndef QPROF_COMPARE_METRICS_H
#define QPROF_COMPARE_METRICS_H

#include "report/compare.h"

struct program_metric;

/* A growing list of them. Zeros are an empty one. */
struct program_metrics {
	struct program_metric **items; /* in the order in which names first came */
	size_t n, cap;
	struct program_metric *by_name;
};

/* The values of one side: NaN counts as more than any number. */
struct program_values {
	size_t n; /* runs that have a value */
	double median, lowest, highest;
};

/* Adds those of a profile, the run-th of its side, from 1. Returns 0 or -ENOMEM. */
int program_metrics_add(struct program_metrics *metrics, enum compare_side side, size_t run,
			const struct recording *r);
void program_metrics_free(struct program_metrics *metrics);

const char *program_metric_name(const struct program_metric *metric);
struct program_values program_metric_values(const struct program_metric *metric,
					    enum compare_side side);
/* Returns NULL if no run has a metric of that name. */
const struct program_metric *program_metric_find(const struct program_metrics *metrics,
						 const char *name);

/* Returns whether a hundredth or more has changed, or the metric is on one side only. */
bool program_metric_is_change(const struct program_metric *metric);
/* Returns true if a side has repeats and the values of the two sides overlap. */
bool program_metric_is_within_spread(const struct program_metric *metric);

#endif
