/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * metrics.h - what a program reported of itself, by name: metrics of the whole run, and metrics of
 * rows, of which tables for people show how often they came, the last, the lowest and the highest.
 */
#ifndef QPROF_METRICS_H
#define QPROF_METRICS_H

#include "base/units.h"
#include "format/recording.h"

struct reported {
	const char *name; /* the recording's */
	bool of_run;	  /* once, of the whole run; else of rows */
	uint64_t count;	  /* how often it came */
	struct profile_metric last;
	struct profile_metric lowest, highest; /* PROFILE_UNREADABLE: none was a number */
	uint64_t last_ns;		       /* when the row came that has the last */
};

/*
 * Returns the metrics of the run, then those of rows, each in the order in which they came; the
 * caller frees them. A name may be there as both. NULL when out of memory.
 */
struct reported *reported_metrics(const struct recording *r, size_t *n);

/* Returns the value as a double; NaN if it could not be read. */
double metric_number(const struct profile_metric *metric);

/* Each writes the value into out (UNITS_TEXT_MAX bytes) and returns it: all its digits, or as many
 * as fit into a cell of a table; "-" if it could not be read. */
char *metric_text(char *out, const struct profile_metric *metric);
char *metric_short(char *out, const struct profile_metric *metric);

#endif
