/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * metrics.h - what an audit tells Prometheus: all metrics that there are, the label sets that have
 * series of their own, and the text of both. Pure: no I/O, no clock.
 *
 * A label set has series while it is told. How many series there may be is bounded, and no user
 * gets more of them than are left for all others; a label set for which there is no room is counted
 * in `other`, a label set like the rest. Nothing that was counted moves from one label set to
 * another, so no counter ever goes down, and none jumps. One that nobody has used for a while makes
 * room for one of a user who has no more, or goes when it has been so for long (linger_ns); should
 * it come back, it goes on where it was.
 */
#ifndef QPROF_METRICS_H
#define QPROF_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a label set is of; it has the metrics of its kind. */
enum metric_kind {
	METRIC_MACHINE, /* without labels: there is one */
	METRIC_SELF,	/* likewise, of qprof-bpf itself */
	METRIC_BUILD,	/* version, kernel */
	METRIC_LOSS,	/* kind */
	METRIC_PROCESS, /* command, container, job_name, pid */
	METRIC_JOB,	/* job_name, rule, container, uid */
	METRIC_STEP,	/* job_name, step */
	METRIC_KINDS
};

enum {
	METRIC_MAX_LABELS = 4,
	METRIC_VALUE_MAX = 128, /* bytes of a label's value; the rest is cut off */
	METRIC_MAX_ROWS = 12,	/* of one kind */
	METRICS_SERIES = 10000, /* by default, of processes, jobs and steps */
};

/* Values, in the order of their text: those of a kind together. See the table in metrics.c. */
enum metric {
	M_AUDIT_START,
	M_AUDIT_RUNNING,
	M_UPDATED,
	M_IO, /* each of these: read and written by calls, read from and written to storage */
	M_CPU = M_IO + 4,
	M_CANCELLED,
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
	M_PROCESS_IO,
	M_PROCESS_CPU = M_PROCESS_IO + 4,
	M_PROCESS_STARTS,

	M_JOBS,
	M_JOB_RSS,
	M_JOB_PEAK,
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

/* Labels that can be left out. */
enum metric_label {
	METRIC_COMMAND = 1,
	METRIC_CONTAINER = 2,
	METRIC_JOB_NAME = 4,
	METRIC_PID = 8,
	METRIC_USUAL_LABELS = METRIC_COMMAND | METRIC_CONTAINER | METRIC_JOB_NAME,
};

struct metrics_config {
	size_t max_series;   /* that processes, jobs and steps have; 0: METRICS_SERIES */
	uint64_t linger_ns;  /* how long a label set is told that nobody uses */
	unsigned int labels; /* enum metric_label, of processes; METRIC_CONTAINER, of jobs too */
};

struct metrics;
struct series; /* a label set with its values */

/* NULL when out of memory. */
struct metrics *metrics_new(const struct metrics_config *config);
void metrics_free(struct metrics *m);

/*
 * The label set with these values, in the order of the kind's labels; bytes that may be anything.
 * It has one user more until series_drop, and takes room that is `uid`'s, unless it has its room.
 * Never NULL: where there is no room, or no memory, it is `other` of its kind.
 */
struct series *series_take(struct metrics *m, enum metric_kind kind, const char *const *values,
			   uint32_t uid, uint64_t now_ns);
void series_drop(struct metrics *m, struct series *series, uint64_t now_ns);
/* Whether that label set is told, or remembered. */
bool series_known(const struct metrics *m, enum metric_kind kind, const char *const *values);
/* The one of a kind that has but one. */
struct series *metrics_only(struct metrics *m, enum metric_kind kind);

/* metric is one of its kind. A counter only grows; times are in nanoseconds. */
void series_add(struct series *series, enum metric metric, uint64_t more);
void series_set(struct series *series, enum metric metric, uint64_t value);
void series_raise(struct series *series, enum metric metric, uint64_t value);
uint64_t series_value(const struct series *series, enum metric metric);
/* 0, for all label sets of its kind. */
void metrics_clear(struct metrics *m, enum metric metric);

/* Those that nobody has used for long are told no more. */
void metrics_tidy(struct metrics *m, uint64_t now_ns);
/* How many series label sets of processes, jobs and steps have; `other` is not in it. */
size_t metrics_n_series(const struct metrics *m);
/*
 * All of it in the text format 0.0.4, without timestamps. self: METRIC_SELF as well, whose names
 * are those of any exporter (node_exporter has its own, and takes no file with the same).
 */
void metrics_write(const struct metrics *m, bool self, FILE *out);

/* A metric as the documentation has it. */
struct metric_info {
	const char *name, *type, *help;
	const char *labels[METRIC_MAX_LABELS + 3]; /* names, NULL at the end; some are in room */
	char room[64];
};
/* The one at index i of all that there are; false: there are not so many. */
bool metrics_describe(size_t i, struct metric_info *info);

#endif
