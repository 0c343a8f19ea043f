/* SPDX-License-Identifier: GPL-2.0-only */
/* audit_report.h - what an audit has found, as a file and as a table. */
#ifndef QPROF_AUDIT_REPORT_H
#define QPROF_AUDIT_REPORT_H

#include "kernel/cgroups.h"
#include "kernel/diskstats.h"
#include "model/machine.h"
#include "format/quality.h"
#include "format/writer.h"

struct audit_report {
	struct run_info info;
	const struct machine *machine;
	struct cgroups *cgroups;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	struct diskstats disks;	   /* what the devices have read and written meanwhile */
	struct run_quality quality;
	uint64_t late_probes;  /* programs that ran already when their probes were found */
	uint64_t missed_joins; /* processes that are of a job, but not in its sums */
	unsigned int width;    /* columns of the table */
	bool colour;
};

/* What devices did, and what processes account for; the rest is nobody's. Bytes. */
struct audit_storage {
	uint64_t devices_read, devices_written;
	uint64_t processes_read, processes_written; /* without what was truncated away in time */
};
struct audit_storage audit_storage(const struct audit_report *report);

/* As quality_counts, of an audit. */
size_t audit_quality_counts(const struct audit_report *report,
			    struct quality_count counts[QUALITY_MAX_COUNTS]);

struct emit;

/* The report as a file (docs/audit.md): all that e is to hold, flushed. 0 or -errno. */
int audit_yaml_write(const struct audit_report *report, struct emit *e);
/* For people; fd stays the caller's. 0 or -errno. */
int audit_summary_write(const struct audit_report *report, int fd);

#endif
