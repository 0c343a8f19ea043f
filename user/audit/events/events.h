/* SPDX-License-Identifier: GPL-2.0-only */
/* events.h - what happens, as it happens, for log pipelines: NDJSON (docs/events.md). */
#ifndef QPROF_EVENTS_H
#define QPROF_EVENTS_H

#include "capture/listener.h"

enum { EVENTS_MAX_SIZE = 64 << 20, EVENTS_KEEP = 4, EVENTS_RATE = 1000 }; /* unless told */

/* What is written; the audit's own lines always are. */
enum event_group {
	EVENTS_PROCESSES = 1,
	EVENTS_JOBS = 2,
	EVENTS_CHECKPOINTS = 4,
	EVENTS_ALL = 7,
};

enum event_format { EVENTS_NO_FORMAT, EVENTS_NDJSON };

struct event_options {
	enum event_format format; /* EVENTS_NO_FORMAT: that of a path, or there are no events */
	const char *path;	  /* NULL: stdout */
	uint64_t max_size;	  /* see struct event_log_options */
	unsigned int keep;	  /* likewise */
	unsigned int groups;	  /* enum event_group */
	unsigned int rate;	  /* lines a second of a job's checkpoints, a quarter of those of a
				   * user's processes and jobs; 0: no limit. More are counted */
	bool no_cmdline;
};

/* A listener of an audit. options must outlive it. NULL when out of memory. */
struct listener *events_listener_new(const struct event_options *options);

#endif
