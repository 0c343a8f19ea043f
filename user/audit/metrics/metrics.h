/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * metrics.h - what an audit tells Prometheus: the table of metrics, the label sets that have series
 * of their own, and the text of both. Pure: no I/O, no clock.
 *
 * A label set is either told, with a series for each metric of its kind, or only remembered. The
 * number of series is bounded, and no user gets more of them than are left for all others. If there
 * is no room for a label set, its events count in `other`, a label set like the rest. A count never
 * moves to another label set, so that no counter goes down or jumps. A label set that nobody has
 * used for a while makes room for one of a user who has no more series, and is no longer told after
 * linger_ns. If it comes back, it goes on from its old counts.
 */
#ifndef QPROF_METRICS_H
#define QPROF_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/quantities.h"

/* The subject of a label set, which decides its metrics. The labels are: */
enum metric_kind {
	METRIC_MACHINE, /* none: there is one label set */
	METRIC_SELF,	/* none: qprof-bpf itself */
	METRIC_BUILD,	/* version, kernel */
	METRIC_LOSS,	/* kind */
	METRIC_PROCESS, /* command, container, job_name, pid */
	METRIC_JOB,	/* job_name, rule, container, uid */
	METRIC_STEP,	/* job_name, step */
	METRIC_KINDS
};

enum {
	METRIC_MAX_LABELS = 4,
	METRIC_VALUE_MAX = 128, /* bytes of a label's value; longer ones are cut */
	METRIC_MAX_ROWS = 32,	/* of a kind */
	METRICS_SERIES = 10000, /* by default, of processes, jobs and steps */
};

#define METRIC_OF_MACHINE(member, s, u, where, ...) METRIC_OF_MACHINE_##where(member)
#define METRIC_OF_MACHINE_EVERYWHERE(member)	    M_MACHINE_##member,
#define METRIC_OF_MACHINE_IF_ANY(member)	    M_MACHINE_##member,
#define METRIC_OF_MACHINE_TOTALS(member)	    M_MACHINE_##member,
#define METRIC_OF_MACHINE_IF_ASKED(member)	    M_MACHINE_##member,
#define METRIC_OF_MACHINE_IN_RUNS(member)
#define METRIC_OF_MACHINE_IN_TREES(member)
#define METRIC_OF_PROCESS(member, s, u, where, ...) METRIC_OF_PROCESS_##where(member)
#define METRIC_OF_PROCESS_EVERYWHERE(member)	    M_PROCESS_##member,
#define METRIC_OF_PROCESS_IF_ANY(member)	    M_PROCESS_##member,
#define METRIC_OF_PROCESS_TOTALS(member)
#define METRIC_OF_PROCESS_IF_ASKED(member) M_PROCESS_##member,
#define METRIC_OF_PROCESS_IN_RUNS(member)
#define METRIC_OF_PROCESS_IN_TREES(member)
#define METRIC_BESIDE(member, ...) M_PROCESS_##member,

/* In the order of their text; those of a kind stand together. See the table in metrics.c. */
enum metric {
	M_AUDIT_START,
	M_AUDIT_RUNNING,
	M_UPDATED,
	USAGE_QUANTITIES(METRIC_OF_MACHINE, ) /* M_MACHINE_io_read and so on */
	M_DEVICE_READ,
	M_DEVICE_WRITTEN,
	M_OVERFLOWS,

	M_SELF_CPU,
	M_SELF_RSS,
	M_SELF_START,

	M_BUILD,

	M_LOST,

	M_PROCESSES,
	M_PROCESS_RSS,
	M_PROCESS_PEAK,
	MEMORY_BESIDE(METRIC_BESIDE, )	      /* M_PROCESS_hugetlb */
	USAGE_QUANTITIES(METRIC_OF_PROCESS, ) /* those that are everywhere */
	M_PROCESS_STARTS,

	M_JOBS,
	M_JOB_RSS,
	M_JOB_PEAK,
	M_JOB_GPU,
	M_JOB_GPU_PEAK,
	M_JOB_LEFT,
	M_JOB_TO_LIMIT,
	M_JOB_STARTS,
	M_JOB_SUCCESSES,
	M_JOB_FAILURES,
	M_JOB_SIGNALS,
	M_JOB_CHECKPOINTS,

	M_STEP_PEAK,
	M_STEP_TIME,
	M_STEP_RUNS,

	METRICS_N
};

/* Labels that --metrics-labels can leave out. */
enum metric_label {
	METRIC_COMMAND = 1,
	METRIC_CONTAINER = 2,
	METRIC_JOB_NAME = 4,
	METRIC_PID = 8,
	METRIC_USUAL_LABELS = METRIC_COMMAND | METRIC_CONTAINER | METRIC_JOB_NAME,
};

struct metrics_config {
	size_t max_series;   /* of processes, jobs and steps; 0: METRICS_SERIES */
	uint64_t linger_ns;  /* how long an unused label set is told */
	unsigned int labels; /* enum metric_label, for processes; METRIC_CONTAINER for jobs, too */
	bool waits;	     /* it is known what threads wait for */
};

struct metrics;
struct series; /* a label set with its values */

/* Returns NULL when out of memory. */
struct metrics *metrics_new(const struct metrics_config *config);
void metrics_free(struct metrics *m);

/*
 * Returns the label set with these values, in the order of the kind's labels; a value may be any
 * bytes. The caller uses it until series_drop(). If it is not told yet, it takes room of the user
 * uid. Never NULL: without room or memory, it is `other` of its kind.
 */
struct series *series_take(struct metrics *m, enum metric_kind kind, const char *const *values,
			   uint32_t uid, uint64_t now_ns);
void series_drop(struct metrics *m, struct series *series, uint64_t now_ns);
/* Returns true if the label set is told or remembered. */
bool series_known(const struct metrics *m, enum metric_kind kind, const char *const *values);
/* Returns the only label set of a kind without labels. */
struct series *metrics_only(struct metrics *m, enum metric_kind kind);

/* metric must be of the label set's kind. A counter only grows; times are in nanoseconds. */
void series_add(struct series *series, enum metric metric, uint64_t more);
void series_set(struct series *series, enum metric metric, uint64_t value);
void series_raise(struct series *series, enum metric metric, uint64_t value);
uint64_t series_value(const struct series *series, enum metric metric);
/* Sets a metric to 0 in all label sets. */
void metrics_clear(struct metrics *m, enum metric metric);

/* Stops telling label sets that were unused for linger_ns. */
void metrics_tidy(struct metrics *m, uint64_t now_ns);
/* Returns the series of processes, jobs and steps, without those of `other`. */
size_t metrics_n_series(const struct metrics *m);
/*
 * Writes all metrics in the text format 0.0.4, without timestamps; with self, METRIC_SELF, too. Its
 * names are the same for every exporter, and node_exporter refuses a file with them.
 */
void metrics_write(const struct metrics *m, bool self, FILE *out);

/* A metric as docs/metrics.md has it. */
struct metric_info {
	const char *name, *type, *help;
	const char
		*labels[METRIC_MAX_LABELS + 3]; /* names, NULL at the end; some point into room */
	char room[64];
};
/* Describes the metric at index i. Returns false if there are fewer. */
bool metrics_describe(size_t i, struct metric_info *info);

#endif
