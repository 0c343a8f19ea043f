/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trace_build.h - what the files that build a trace share. trace.c builds the run and its processes
 * and puts events in order, trace_counters.c builds counter tracks, trace_slices.c the slices of
 * phases. trace_args.c says what a finished event is called and what there is to say of it.
 */
#ifndef QPROF_TRACE_BUILD_H
#define QPROF_TRACE_BUILD_H

#include "report/trace.h"

enum { TRACE_NONE = UINT32_MAX }; /* no track, item or process */
enum { TRACE_FILE_SUMS = 3 };	  /* counters of a file */

/* In a function for qsort: decides if a and b differ. */
#define TRACE_ORDER(a, b)                                                                          \
	do {                                                                                       \
		if ((a) != (b))                                                                    \
			return (a) < (b) ? -1 : 1;                                                 \
	} while (0)

struct trace_builder {
	struct trace *t;
	const struct recording *r;
	size_t max_tracks;
	uint32_t *by_pid;	 /* indices of processes, in order of pid, then of start */
	uint32_t *process_track; /* of each process: the index of its track */
	struct error *err;
};

/* trace.c. Functions that return an index return TRACE_NONE, and set *err, when out of memory. */

/* Sets *err and returns -1. */
int trace_no_memory(struct trace_builder *b);
/* Returns the new track's index. A track whose parent is TRACE_NONE becomes its own parent. */
uint32_t trace_add_track(struct trace_builder *b, struct trace_track track);
/* The track of a process; process is NULL if the file does not list it. */
uint32_t trace_add_process(struct trace_builder *b, uint32_t pid,
			   const struct recording_process *process);
/* trace_build made room for every event. */
struct trace_event *trace_add_event(struct trace_builder *b, uint32_t track,
				    enum trace_event_type type, uint64_t time_ns, uint32_t item);
/*
 * Returns which of the processes with this pid it was at that time: the last to start by then, or
 * the first of them if all started later. TRACE_NONE if no process has this pid.
 */
uint32_t trace_process_at(const struct trace_builder *b, uint32_t pid, uint64_t time_ns);

/* trace_counters.c and trace_slices.c: 0, or -1 and *err. */

/* Memory and usage of the tree, the program's own metrics, and files. */
int trace_add_tree_counters(struct trace_builder *b);
/* Memory of each process; b->process_track is filled in. */
int trace_add_process_counters(struct trace_builder *b);
int trace_add_phases(struct trace_builder *b, const struct render_options *options);

#endif
