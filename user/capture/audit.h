/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * audit.h - the life of an audit: every process of the machine, until a signal or the duration ends
 * it. What it learns goes to its report, and, as it happens, to listeners: a live view, metrics,
 * rules.
 */
#ifndef QPROF_AUDIT_H
#define QPROF_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/report/audit_report.h"
#include "kernel/cgroups.h"
#include "base/error.h"
#include "model/machine.h"
#include "format/quality.h"
#include "capture/capture.h"

struct audit;

/*
 * Something that an audit feeds, beside its report. Functions that are NULL are not called. All are
 * called from one thread, in between wake-ups; none may block, for records wait meanwhile.
 */
struct listener {
	/* Once, when the BPF programs are attached and before the first record: to open what it
	 * needs and to add its wakes (audit_capture). 0, or -1 and *err: the audit ends. */
	int (*start)(struct listener *listener, struct audit *a, struct error *err);
	/* Each record that the model has taken, with what it changed, in order. Processes that were
	 * there before come first, as WIRE_FORK with WIRE_PROCESS_ATTACHED and then, if it is
	 * known, as WIRE_EXEC with their command line. May be called 50,000 times a second. */
	void (*record)(struct listener *listener, const struct wire_header *record,
		       const struct machine_news *news);
	/* After some records, or none, were taken. The first time those that were there before are
	 * all known, with their parents. */
	void (*batch)(struct listener *listener);
	/* At SIGHUP: its files were moved away, to be opened anew. Unless a listener has this, or
	 * if stdin is a terminal, SIGHUP ends the program as it does others. */
	void (*reopen)(struct listener *listener);
	/* Once, when all is known and the jobs are closed. Not after an error. */
	void (*finish)(struct listener *listener);
	/* Once, on every way out, before the audit's own things go. */
	void (*close)(struct listener *listener);
	void (*free)(struct listener *listener); /* after the audit, by whoever had it made */
};

struct audit_options {
	const char *output;	       /* path, "-", or NULL for none */
	uint64_t duration_ns;	       /* 0: without limit */
	unsigned int max_processes;    /* alive at a time, and kept; 0 for the default */
	unsigned int checkpoint_limit; /* of a process in a second; 0: none */
	bool count_splice;	       /* see struct engine_config */
	const char *const *patterns;   /* of --usdt */
	size_t n_patterns;
	unsigned int summary_width; /* columns of the table on stderr at the end; 0 for none */
	bool summary_colour;
	bool quiet_start; /* a listener says that the audit has begun */
	bool live;	  /* points wake us up, ten times a second at most: someone looks at them */
	struct listener *const *listeners;
	size_t n_listeners;
};

/* Runs to the end. The exit status for the program; errors have been printed. */
int capture_audit(const struct audit_options *options);

/* For listeners. */

struct machine *audit_machine(struct audit *a);
struct capture *audit_capture(struct audit *a);
/* Whoever was there before is known, and was searched for probes. */
bool audit_has_begun(const struct audit *a);
/* CLOCK_MONOTONIC of the first moment. */
uint64_t audit_start_ns(const struct audit *a);
/* Likewise of the last, from which on jobs that still run are ended by us; 0: it goes on. */
uint64_t audit_end_ns(const struct audit *a);
/* Brings I/O and CPU of all processes up to date, unless that was done max_age_ns ago or later. It
 * costs a few microseconds a process: not to be called while nobody asks. */
void audit_refresh(struct audit *a, uint64_t max_age_ns);
/* Where a process belongs. Never NULL, valid until the next call. */
const struct cgroup *audit_cgroup(struct audit *a, uint64_t id);
/*
 * Takes a process, with its descendants, for a job because of a rule; its WIRE_START comes as a
 * record then, and the job has the texts. 0; -EALREADY: it is in a job, or it or an ancestor is
 * about to be; or as engine_join_job. Not before the first batch: descendants would be missed.
 */
int audit_begin_job(struct audit *a, const struct profile_process *process, const char *rule,
		    const char *evidence);
/* All that was lost or is in doubt so far, with what it means, zeros too: how many of counts. */
size_t audit_counts(struct audit *a, struct quality_count counts[QUALITY_MAX_COUNTS]);
/* More records wait than were taken before this batch: what is not urgent had better wait, too. */
bool audit_is_behind(const struct audit *a);
/* What went wrong so far; its warnings are valid until the next wake-up. */
struct run_quality audit_quality(struct audit *a);
/* What it would report now, but for what devices did and for notes; likewise. */
struct audit_report audit_so_far(struct audit *a);

#endif
