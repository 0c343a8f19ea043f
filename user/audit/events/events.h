/* SPDX-License-Identifier: GPL-2.0-only */
/* events.h - what happens in an audit, as it happens, as NDJSON for log pipelines
 * (docs/events.md). */
#ifndef QPROF_EVENTS_H
#define QPROF_EVENTS_H

#include "capture/listener.h"

enum { EVENTS_MAX_SIZE = 64 << 20, EVENTS_KEEP = 4, EVENTS_RATE = 1000 }; /* the defaults */

/* Which lines are written. The lines of the audit itself always are. */
enum event_group {
	EVENTS_PROCESSES = 1,
	EVENTS_JOBS = 2,
	EVENTS_CHECKPOINTS = 4,
	EVENTS_ALL = 7,
};

enum event_format { EVENTS_NO_FORMAT, EVENTS_NDJSON };

struct event_options {
	enum event_format format; /* EVENTS_NO_FORMAT: NDJSON if there is a path, else no events */
	const char *path;	  /* NULL: stdout */
	uint64_t max_size;	  /* see struct event_log_options */
	unsigned int keep;	  /* see struct event_log_options */
	unsigned int groups;	  /* enum event_group */
	unsigned int rate;	  /* lines a second for the checkpoints of a job; the processes
				   * and jobs of a user have four times as many. 0: no limit */
	bool no_cmdline;
};

/* Returns a listener of an audit, or NULL when out of memory. options must outlive it. */
struct listener *events_listener_new(const struct event_options *options);

#endif
