/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trace.h - a recording as viewers of traces have it: tracks, and what happens on them in order of
 * time. The formats for such viewers (perfetto.c, chrome.c) only put it into bytes.
 *
 * Slices of a track nest: each end is that of the slice that began last and is still open, and
 * none is open after the last event. Times are nanoseconds since the start of the run.
 */
#ifndef QPROF_TRACE_H
#define QPROF_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/recording.h"
#include "report/renderer.h"

enum {
	TRACE_MAX_VALUES = 5, /* of one event of a track of counters */
	TRACE_MAX_ARGS = 16,
};

enum trace_track_kind {
	TRACE_RUN,	/* the whole tree: a slice of the run, an instant at its peak */
	TRACE_PROCESS,	/* a slice of its life */
	TRACE_THREAD,	/* its phases as slices, its marks as instants */
	TRACE_LANE,	/* slices that would not nest there */
	TRACE_COUNTERS, /* numbers over time */
};

enum trace_unit { TRACE_COUNT, TRACE_BYTES, TRACE_NS };

/* What a track of counters counts: n_names numbers of one unit that change together. */
struct trace_counters {
	enum trace_unit unit;
	unsigned int n_names; /* at most TRACE_MAX_VALUES */
	unsigned int n_parts; /* so many after the first are what that one is made of; 0: none */
	const char *names[TRACE_MAX_VALUES];
};

struct trace_track {
	enum trace_track_kind kind;
	uint32_t parent;   /* index of a track before it; its own index: none */
	uint32_t pid, tid; /* 0: of the whole tree, or not known */
	const char *name;  /* NULL: pid and tid say it */
	const struct recording_process *process; /* whose it is; NULL: not known */
	bool pid_reused; /* of TRACE_THREAD: another process had that pid, too */
	/* Of TRACE_COUNTERS only: */
	struct trace_counters counters;
	uint32_t first_value; /* unlike that of others; the n_names - 1 after it are this one's too
			       */
	uint32_t source;      /* trace.c's */
};

enum trace_event_type { TRACE_BEGIN, TRACE_END, TRACE_INSTANT, TRACE_VALUES };

struct trace_event {
	uint64_t time_ns;
	uint32_t order; /* of events of the same time */
	uint32_t track;
	uint32_t item; /* what it is about; trace.c's */
	uint32_t type : 2;
	uint32_t metric : 30;
};

/* Something to be said of a slice or an instant. */
struct trace_arg {
	const char *name;
	const char *text; /* NULL: it is the number */
	int64_t number;
};

struct trace_value {
	enum { TRACE_NO_VALUE, TRACE_INTEGER, TRACE_REAL } kind;
	bool changed; /* it is another one than before on its track */
	int64_t integer;
	double real; /* finite */
};

struct trace {
	const struct recording *recording;
	struct trace_track *tracks; /* parents stand before their children */
	size_t n_tracks;
	struct trace_event *events; /* in order of time */
	size_t n_events;
	struct trace_value *last; /* of each value of each track */
	size_t n_values;
	char *command;	    /* of the run, on one line */
	char peak_name[64]; /* of the instant */
	bool says_calls, says_storage, says_cpu;
};

/* 0, or -1 and *err. In either case trace_free is for the caller; the recording must outlive it. */
int trace_build(struct trace *t, const struct recording *r, const struct render_options *options,
		struct error *err);
void trace_free(struct trace *t);

/* Of a slice or an instant. */
const char *trace_name(const struct trace *t, const struct trace_event *event);
const char *trace_category(const struct trace *t, const struct trace_event *event);
/* Likewise; TRACE_MAX_ARGS have room in args. How many there are. */
size_t trace_args(const struct trace *t, const struct trace_event *event, struct trace_arg *args);

/*
 * Of TRACE_VALUES: the numbers of its track from then on (TRACE_MAX_VALUES have room). To be asked
 * once of each event, in their order, or what changed is not known.
 */
void trace_values(struct trace *t, const struct trace_event *event, struct trace_value *values);

#endif
