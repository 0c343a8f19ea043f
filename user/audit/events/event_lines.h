/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * event_lines.h - what happens in an audit, as lines of JSON: docs/events.md says what each key is,
 * docs/events.schema.json what each line looks like.
 *
 * Pure: no clock and no file but the FILE that a line goes to. Every line ends in the one newline
 * that is in it, and has at most EVENT_LINE_MAX bytes, whatever its texts hold.
 */
#ifndef QPROF_EVENT_LINES_H
#define QPROF_EVENT_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernel/cgroups.h"
#include "base/json_writer.h"
#include "model/machine.h"
#include "format/quality.h"
#include "format/run_info.h"

enum {
	EVENT_SCHEMA_VERSION = 1,
	EVENT_METRICS_MAX = 64, /* of a line */
	/* Each byte of a name becomes six at most: 64 metrics of 255, and some 20 KB of the rest.
	 */
	EVENT_LINE_MAX = 128 << 10,
};

enum event_kind {
	EVENT_AUDIT_START,
	EVENT_AUDIT_END,
	EVENT_PROCESS_START,
	EVENT_PROCESS_EXEC,
	EVENT_PROCESS_EXIT,
	EVENT_JOB_BEGIN,
	EVENT_JOB_END,
	EVENT_CHECKPOINT,
	EVENT_QUALITY,
	EVENT_WARNING,
	EVENT_LOST,
	EVENT_KINDS,
};

/* As in a line: "process_exec". */
const char *event_name(enum event_kind kind);

/* What all lines of an audit have. Zeroed but for what is set here. */
struct event_lines {
	FILE *out;		    /* of the next line */
	char audit[24];		    /* which audit it is: unlike any other of this machine */
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, as it is now */
	uint64_t page_size;
	bool no_cmdline; /* it may hold secrets */

	/* event_lines.c's: */
	struct json_writer json;
	int64_t second; /* of text */
	char text[40];	/* date and time of it */
};

/* Whose a process or a job is. */
struct event_owner {
	uint32_t uid;
	const char *user; /* may be no UTF-8 */
	const struct cgroup *cgroup;
};

/* Times are CLOCK_MONOTONIC. */

/* boot_id: the kernel's, or "". */
void event_audit_start(struct event_lines *l, uint64_t time_ns, const struct run_info *info,
		       const char *boot_id);

/* EVENT_PROCESS_START, _EXEC or _EXIT. job is its, or NULL. */
void event_process(struct event_lines *l, enum event_kind kind, uint64_t time_ns,
		   const struct profile_process *process, const struct machine_job *job,
		   const struct event_owner *owner);

/* EVENT_JOB_BEGIN or _END, of a job that has a root. still_running: the audit ended first. */
void event_job(struct event_lines *l, enum event_kind kind, uint64_t time_ns,
	       const struct machine_job *job, const struct event_owner *owner, bool still_running);

/* started_ns: of the process that came to it. */
void event_checkpoint(struct event_lines *l, const struct profile_checkpoint *step,
		      uint64_t started_ns, const struct machine_job *job);

/* Those of n counts that differ from before[]. */
void event_quality(struct event_lines *l, uint64_t time_ns, const struct quality_count *counts,
		   const uint64_t *before, size_t n);

void event_warning(struct event_lines *l, uint64_t time_ns, const struct run_warning *warning);

/* So many lines since the last of these, and in all. */
void event_lost(struct event_lines *l, uint64_t time_ns, uint64_t lost, uint64_t total);

/* What an audit was. */
struct event_audit {
	uint64_t duration_ns;
	uint64_t processes, alive, jobs;
	uint64_t written[EVENT_KINDS]; /* lines, without this one */
	uint64_t lost, limited;	       /* lines: no room for them, or beyond the rate */
};
void event_audit_end(struct event_lines *l, uint64_t time_ns, const struct event_audit *audit);

#endif
