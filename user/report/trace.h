/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trace.h - a recording as viewers of traces want it: tracks, and the events on them in order of
 * time. perfetto.c and chrome.c put a trace into bytes and decide nothing.
 *
 * Slices of a track nest: an end belongs to the slice that began last and is still open, and no
 * slice is open after the last event. Times are nanoseconds since the start of the run.
 */
#ifndef QPROF_TRACE_H
#define QPROF_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/ending.h"
#include "format/quantities.h"
#include "format/recording.h"
#include "report/rates.h"
#include "report/renderer.h"

enum {
	TRACE_MAX_VALUES = 5, /* of one event of a counter track */
	TRACE_MAX_ARGS = 16 + N_QUANTITIES,
};

enum trace_track_kind {
	TRACE_RUN,	/* the whole tree: a slice of the run, an instant at its peak */
	TRACE_PROCESS,	/* a slice of its life */
	TRACE_THREAD,	/* its phases as slices, its marks as instants */
	TRACE_LANE,	/* slices that would not nest on their thread's track */
	TRACE_COUNTERS, /* numbers over time: a counter track */
};

/* What a counter track counts: n_names numbers of one unit that change together. */
struct trace_counters {
	enum quantity_unit unit;
	unsigned int n_names; /* at most TRACE_MAX_VALUES */
	unsigned int n_parts; /* the first is the sum of this many after it; 0: of none */
	const char *names[TRACE_MAX_VALUES];
};

struct trace_track {
	enum trace_track_kind kind;
	uint32_t parent;   /* index of a track before this one; its own index: no parent */
	uint32_t pid, tid; /* 0: of the whole tree, or not known */
	const char *name;  /* NULL: pid and tid say it */
	const struct recording_process *process; /* NULL: of the whole tree, or not known */
	bool pid_reused; /* of TRACE_THREAD: another process had that pid, too */
	/* Of TRACE_COUNTERS only: */
	struct trace_counters counters;
	uint32_t first_value; /* index of the first of its n_names values in struct trace */
	uint32_t source;      /* private to trace_counters.c */
};

enum trace_event_type { TRACE_BEGIN, TRACE_END, TRACE_INSTANT, TRACE_VALUES };

struct trace_event {
	uint64_t time_ns;
	uint32_t order; /* among events of the same time */
	uint32_t track; /* index */
	uint32_t item;	/* index of what the event is about: its list is private to trace_*.c */
	uint32_t type : 2;
	uint32_t metric : 30; /* index within its row; of a file's sum, the file's */
};

/* A fact about a slice or an instant. */
struct trace_arg {
	const char *name;
	const char *text; /* NULL: the fact is the number */
	int64_t number;
};

struct trace_value {
	enum { TRACE_NO_VALUE, TRACE_INTEGER, TRACE_REAL } kind;
	bool changed; /* differs from the value before it on its track */
	int64_t integer;
	double real; /* finite */
};

struct trace {
	const struct recording *recording;
	struct trace_track *tracks; /* parents before their children */
	size_t n_tracks;
	struct trace_event *events; /* in order of time */
	size_t n_events;
	struct trace_value *last; /* of each counter: the value that trace_values gave last */
	size_t n_values;
	char *command;	   /* of the run, on one line */
	char *definitions; /* of its metrics, a line each */
	struct ending ending;
	char peak_name[64];	    /* of the instant at the peak */
	bool says[QUANTITY_GROUPS]; /* rows have the quantities of the group */
	struct rate *rates;	    /* of the curve; NULL without one */
	size_t n_rates;
	struct arena *names; /* of counters of files */
};

/*
 * Returns 0, or -1 and *err. The caller calls trace_free either way. The recording must live as
 * long as the trace.
 */
int trace_build(struct trace *t, const struct recording *r, const struct render_options *options,
		struct error *err);
void trace_free(struct trace *t);

/* The name and category of a slice or an instant, and the facts about it: args has room for
 * TRACE_MAX_ARGS, and trace_args returns how many there are. */
const char *trace_name(const struct trace *t, const struct trace_event *event);
const char *trace_category(const struct trace *t, const struct trace_event *event);
size_t trace_args(const struct trace *t, const struct trace_event *event, struct trace_arg *args);

/*
 * The values of a TRACE_VALUES event's track from that time on; values has room for
 * TRACE_MAX_VALUES. Call it once for each such event, in their order: `changed` depends on it.
 */
void trace_values(struct trace *t, const struct trace_event *event, struct trace_value *values);

#endif
