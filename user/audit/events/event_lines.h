/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * event_lines.h - what happens in an audit, as lines of JSON. docs/events.md says what each key
 * means, docs/events.schema.json how each line looks.
 *
 * Pure: asks no clock, and opens no file. Each line goes to the FILE of struct event_lines. A line
 * has one newline, at its end, and at most EVENT_LINE_MAX bytes, whatever its texts hold.
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
	EVENT_METRICS_MAX = 64, /* in a line */
	/* A byte of a name takes at most six bytes in JSON: 64 metrics of 255 bytes, 5 files of
	 * 512, 10 functions of twice 255, and some 20 KB for everything else. */
	EVENT_LINE_MAX = 176 << 10,
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

/* Returns the name that lines have: "process_exec". */
const char *event_name(enum event_kind kind);

/* What all lines of an audit share. The caller sets the first five members and zeroes the rest. */
struct event_lines {
	FILE *out;		    /* where the next line goes */
	char audit[24];		    /* names this audit; no other of this machine has it */
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, now */
	uint64_t page_size;
	bool no_cmdline; /* leaves out command lines, which may hold secrets */

	/* Only event_lines.c uses these. */
	struct json_writer json;
	int64_t second; /* whose date and time are in text */
	char text[40];
};

/* The owner of a process or a job. */
struct event_owner {
	uint32_t uid;
	const char *user; /* may be invalid UTF-8 */
	const struct cgroup *cgroup;
};

/* Each function below writes a line. time_ns is CLOCK_MONOTONIC. */

/* boot_id is the kernel's, or "" if it is not known. */
void event_audit_start(struct event_lines *l, uint64_t time_ns, const struct run_info *info,
		       const char *boot_id);

/* kind is EVENT_PROCESS_START, _EXEC or _EXIT. job is NULL if the process is in no job. */
void event_process(struct event_lines *l, enum event_kind kind, uint64_t time_ns,
		   const struct profile_process *process, const struct machine_job *job,
		   const struct event_owner *owner);

/* kind is EVENT_JOB_BEGIN or _END; the job has a root. still_running: the audit ended first. */
void event_job(struct event_lines *l, enum event_kind kind, uint64_t time_ns,
	       const struct machine_job *job, const struct event_owner *owner, bool still_running);

/* started_ns is when the process that hit the checkpoint started. */
void event_checkpoint(struct event_lines *l, const struct profile_checkpoint *step,
		      uint64_t started_ns, const struct machine_job *job);

/* Writes the counts that differ from before[]. */
void event_quality(struct event_lines *l, uint64_t time_ns, const struct quality_count *counts,
		   const uint64_t *before, size_t n);

void event_warning(struct event_lines *l, uint64_t time_ns, const struct run_warning *warning);

/* lost: lines that are missing since the last such line; total: since the audit began. */
void event_lost(struct event_lines *l, uint64_t time_ns, uint64_t lost, uint64_t total);

/* The figures of an audit that has ended. */
struct event_audit {
	uint64_t duration_ns;
	uint64_t processes, alive, jobs;
	uint64_t written[EVENT_KINDS]; /* lines, without the one that says so */
	uint64_t lost, limited; /* lines for which there was no room; lines beyond the rate */
};
void event_audit_end(struct event_lines *l, uint64_t time_ns, const struct event_audit *audit);

#endif
