/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job_limits.h - how close each job of an audit comes to a limit of memory, and when it will be
 * there if it goes on growing. Warns once of each: on stderr, in the report, and as an event.
 */
#ifndef QPROF_JOB_LIMITS_H
#define QPROF_JOB_LIMITS_H

#include "capture/listener.h"
#include "model/growth.h"
#include "model/headroom.h"

/* `at` must outlive it. Returns NULL when out of memory. */
struct listener *job_limits_listener_new(const struct headroom_warning *at);

/* Returns false if no limit of the job is known; *left: until the nearest. l: a
 * job_limits_listener_new(). */
bool job_limits_left(const struct listener *l, const struct machine_job *job, uint64_t *left);
/* Returns false if the job does not grow, or not half of the way. */
bool job_limits_end(const struct listener *l, const struct machine_job *job,
		    struct growth_end *end);

#endif
