/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * meter.h - reads the model of a machine into metrics: which label sets a process, a job and a
 * phase are counted in, and since when. Pure, as the model is.
 *
 * What a process has used is counted in the label set that it had while it used it, as far as
 * anybody looked: when it executes another program, when it begins a job, at its end, and whenever
 * meter_look is called.
 */
#ifndef QPROF_METER_H
#define QPROF_METER_H

#include "model/machine.h"
#include "audit/metrics/metrics.h"

struct meter;

struct meter_config {
	struct metrics_config metrics;
	uint64_t page_size;
	/* The container of a cgroup, "" for none; valid until the next call. */
	const char *(*container)(void *context, uint64_t cgroup);
	void *context;
};

enum {
	METER_STEPS = 100, /* names of phases that one job may bring along; more are `other` */
	METER_DEPTH = 16,  /* phases of a job open at a time; deeper ones are not counted */
};

/* NULL when out of memory. */
struct meter *meter_new(const struct meter_config *config);
void meter_free(struct meter *meter);
struct metrics *meter_metrics(struct meter *meter);

/* After the model has taken the record: see struct listener. */
void meter_took(struct meter *meter, const struct wire_header *record,
		const struct machine_news *news);
/* Brings all up to the model as it is now: before the metrics are written. */
void meter_look(struct meter *meter, const struct machine *m, uint64_t now_ns);

enum { METER_NAME_MAX = 128 };

/*
 * What a job is called after its first process, in out[METER_NAME_MAX]: its command or, of an
 * interpreter, the script or module that it runs. cmdline may be NULL. Returns out.
 */
char *meter_job_name(char *out, const char *comm, const char *cmdline);

#endif
