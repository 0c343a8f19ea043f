/* SPDX-License-Identifier: GPL-2.0-only */
/* audit_report.h - what an audit has found, as a file and as a table. */
#ifndef QPROF_AUDIT_REPORT_H
#define QPROF_AUDIT_REPORT_H

#include "capture/listener.h"
#include "format/run_info.h"
#include "base/names.h"
#include "kernel/cgroups.h"
#include "kernel/diskstats.h"
#include "model/machine.h"

/* All that is reported of an audit that is over. */
struct audit_report {
	const struct run_info *info;
	const struct run_quality *quality;
	const struct machine *machine;
	struct cgroups *cgroups;
	struct user_names *users;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	struct diskstats disks;	   /* what the devices have read and written meanwhile */
};

/* For a listener's finish(). */
void audit_report_fill(struct audit_report *report, struct capture *c);

/* What devices did, and what processes account for; the rest is nobody's. Bytes. */
struct audit_storage {
	uint64_t devices_read, devices_written;
	uint64_t processes_read, processes_written; /* without what was truncated away in time */
};
struct audit_storage audit_storage(const struct audit_report *report);

/* Writes the report (docs/audit.md) to path at the end; "-" is stdout. path must outlive the
 * listener. NULL when out of memory. */
struct listener *report_listener_new(const char *path);
/* Writes a table for people to stderr at the end. width is the columns that there are; colour:
 * escapes are wanted. NULL when out of memory. */
struct listener *report_table_listener_new(unsigned int width, bool colour);

#endif
