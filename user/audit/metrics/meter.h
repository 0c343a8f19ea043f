/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * meter.h - counts the processes, jobs and phases of a machine as metrics. Pure, as the model is.
 *
 * A process can change its label set: its command at an exec, its job when that begins. The meter
 * looks at it before it changes, at its end, and at each meter_look(), and counts what the process
 * has used since in the label set that it had.
 */
#ifndef QPROF_METER_H
#define QPROF_METER_H

#include "model/machine.h"
#include "audit/metrics/metrics.h"

struct meter;

struct meter_config {
	struct metrics_config metrics;
	uint64_t page_size;
	/* Returns the container of a cgroup, "" for none; valid until the next call. */
	const char *(*container)(void *context, uint64_t cgroup);
	/* Sets what the job has left of memory, and after what time it has none; 0: not known. May
	 * be NULL. */
	void (*limits)(void *context, const struct machine_job *job, uint64_t *left, uint64_t *ns);
	void *context;
};

enum {
	METER_STEPS = 100, /* new names of phases that a job may add; more are `other` */
	METER_DEPTH = 16,  /* phases of a job that are open at a time; more are not counted */
};

/* Returns NULL when out of memory. */
struct meter *meter_new(const struct meter_config *config);
void meter_free(struct meter *meter);
struct metrics *meter_metrics(struct meter *meter);

/* After the model has taken the record: see struct listener. */
void meter_took(struct meter *meter, const struct wire_header *record,
		const struct machine_news *news);
/* Brings all metrics up to the model as it is now, before they are written. */
void meter_look(struct meter *meter, const struct machine *m, uint64_t now_ns);

enum { METER_NAME_MAX = 128 };

/*
 * Names a job after its first process, in out[METER_NAME_MAX]: the command; or the script or module
 * that an interpreter runs. cmdline may be NULL. Returns out.
 */
char *meter_job_name(char *out, const char *comm, const char *cmdline);

#endif
