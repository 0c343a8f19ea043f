/* SPDX-License-Identifier: GPL-2.0-only */
/* audit_state.h - what listeners may ask of an audit, from start() on, and the jobs that they may
 * begin. */
#ifndef QPROF_AUDIT_STATE_H
#define QPROF_AUDIT_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "capture/listener.h"
#include "format/quality.h"
#include "kernel/cgroups.h"
#include "kernel/diskstats.h"
#include "model/machine.h"

struct audit;

/* The audit that c is. */
struct audit *audit_of(struct capture *c);

struct machine *audit_machine(struct audit *a);
struct cgroups *audit_cgroups(struct audit *a);
struct user_names *audit_user_names(struct audit *a);
/* Where a process belongs. Never NULL, valid until the next call. */
const struct cgroup *audit_cgroup(struct audit *a, uint64_t id);

/* CLOCK_MONOTONIC of the first moment. */
uint64_t audit_start_ns(const struct audit *a);
/* CLOCK_MONOTONIC of the last moment, from which on the audit ends the jobs that still run; 0: the
 * audit goes on. */
uint64_t audit_end_ns(const struct audit *a);
/* CLOCK_MONOTONIC of the moment when the model was finished: known in finish(). */
uint64_t audit_finished_ns(const struct audit *a);

/* Brings I/O and CPU of all processes up to date, unless that was done at most max_age_ns ago.
 * Costs a few microseconds a process: do not call it while nobody asks. */
void audit_refresh(struct audit *a, uint64_t max_age_ns);
/* What block devices have done since the audit began; none if they cannot be read. */
void audit_disks(const struct audit *a, struct diskstats *disks);
/* All that was lost or is in doubt so far, zeros too. Returns how many of counts were set. */
size_t audit_counts(struct audit *a, struct quality_count counts[QUALITY_MAX_COUNTS]);

/*
 * Takes a process, with its descendants, for a job because of a rule. The job's WIRE_START comes as
 * a record then, and the job has the texts. Returns 0; -EALREADY: the process is in a job, or it or
 * an ancestor is about to be; or as engine_begin_job(). Not before the first batch: descendants
 * would be missed.
 */
int audit_begin_job(struct audit *a, const struct profile_process *process, const char *rule,
		    const char *evidence);

#endif
