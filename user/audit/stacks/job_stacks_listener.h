/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job_stacks_listener.h - has stacks sampled in jobs of an audit (--stacks), and says of each that
 * has ended which functions made its memory grow and used its CPU time (machine_job.stacks). It
 * comes before all who tell of these.
 */
#ifndef QPROF_JOB_STACKS_LISTENER_H
#define QPROF_JOB_STACKS_LISTENER_H

#include "capture/listener.h"

enum {
	JOB_STACKS_JOBS = 64, /* that are sampled at a time; one user has no more than are left */
};

/* samples: enum stack_samples. pattern: of names of jobs, that is of rules and recipes, or of the
 * first process; NULL: all. Returns NULL when out of memory. */
struct listener *job_stacks_listener_new(unsigned int samples, const char *pattern);

#endif
