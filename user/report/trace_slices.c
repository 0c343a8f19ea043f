/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Phases as slices. A viewer wants the slices of a track to nest, and phases of a thread may cross:
 * each phase goes to the first lane where it nests, and each lane beyond the first is a track.
 *
 *   begin A, begin B, end A, end B     thread    |---- A ----|
 *                                      lane           |---- B ----|
 *
 * Gaps between marks have lanes of their own, and each mark is an instant of the thread.
 */
#include "report/trace_build.h"

#include <stdlib.h>

enum {
	/* The model has no more phases of a thread open at a time. */
	MAX_LANES = PROFILE_MAX_DEPTH,
};

struct slice {
	uint32_t pid, tid;
	uint32_t process; /* index in the recording, or TRACE_NONE */
	uint32_t phase;	  /* index in the recording */
	uint32_t kind;	  /* enum profile_phase_kind */
	uint32_t outer;	  /* the slice that this one stands in, or TRACE_NONE */
	uint64_t start_ns, end_ns;
};

struct lane {
	uint32_t innermost; /* the slice that began last and is still open, or TRACE_NONE */
	uint32_t track;
};

struct slices {
	struct trace_builder *b;
	struct slice *list;
	size_t n;
	uint32_t first_gap; /* phase that begins with the run and not at a mark, or TRACE_NONE */
	struct lane lanes[MAX_LANES];
	size_t n_lanes;
};

/* ---- In order ---- */

/* Threads together, pairs before gaps; of those that begin at the same time, the longest first. */
static int by_thread(const void *x, const void *y)
{
	const struct slice *a = x, *b = y;

	TRACE_ORDER(a->pid, b->pid);
	TRACE_ORDER(a->process, b->process);
	TRACE_ORDER(a->tid, b->tid);
	TRACE_ORDER(a->kind, b->kind);
	TRACE_ORDER(a->start_ns, b->start_ns);
	TRACE_ORDER(b->end_ns, a->end_ns);
	TRACE_ORDER(a->phase, b->phase);
	return 0;
}

static bool same_thread(const struct slice *a, const struct slice *b)
{
	return a->pid == b->pid && a->process == b->process && a->tid == b->tid;
}

static void list_slices(struct slices *s, const struct render_options *options)
{
	const struct recording *r = s->b->r;

	s->first_gap = TRACE_NONE;
	for (uint32_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (phase->kind == PROFILE_PHASE_GAP && s->first_gap == TRACE_NONE)
			s->first_gap = i;
		if (!render_wants_phase(options, phase))
			continue;
		s->list[s->n++] = (struct slice){
			.pid = phase->pid,
			.process = trace_process_at(s->b, phase->pid, phase->start_ns),
			.tid = phase->pid ? phase->tid : 0,
			.phase = i,
			.outer = TRACE_NONE,
			.kind = phase->kind,
			.start_ns = phase->start_ns,
			.end_ns = phase->start_ns + phase->duration_ns,
		};
	}
	qsort(s->list, s->n, sizeof(*s->list), by_thread);
}

/* ---- Lanes ---- */

/* Ends the slices of a lane that are over by then. */
static void end_slices(struct slices *s, struct lane *lane, uint64_t time_ns)
{
	while (lane->innermost != TRACE_NONE && s->list[lane->innermost].end_ns <= time_ns) {
		const struct slice *slice = &s->list[lane->innermost];

		trace_add_event(s->b, lane->track, TRACE_END, slice->end_ns, slice->phase);
		lane->innermost = slice->outer;
	}
}

static uint32_t add_lane_track(struct slices *s, uint32_t thread, const char *name)
{
	const struct trace_track *track = &s->b->t->tracks[thread];

	return trace_add_track(s->b, (struct trace_track){.kind = TRACE_LANE,
							  .parent = thread,
							  .pid = track->pid,
							  .tid = track->tid,
							  .process = track->process,
							  .name = name});
}

/* Returns NULL and sets *err if there is no further lane. */
static struct lane *add_lane(struct slices *s, const struct slice *slice, uint32_t thread)
{
	const bool gap = slice->kind == PROFILE_PHASE_GAP;
	uint32_t track = thread;

	if (s->n_lanes == MAX_LANES) {
		error_set(s->b->err,
			  "more than %d phases of thread %u cross each other: no viewer "
			  "shows that; leave some out with --phase",
			  MAX_LANES, slice->tid);
		return NULL;
	}
	if (s->n_lanes || gap)
		track = add_lane_track(s, thread, gap ? "between marks" : "crossing phases");
	if (track == TRACE_NONE)
		return NULL;
	s->lanes[s->n_lanes] = (struct lane){.innermost = TRACE_NONE, .track = track};
	return &s->lanes[s->n_lanes++];
}

/* The first lane where the slice ends no later than the one that it stands in. */
static struct lane *lane_for(struct slices *s, const struct slice *slice, uint32_t thread)
{
	for (size_t i = 0; i < s->n_lanes; i++) {
		struct lane *lane = &s->lanes[i];

		end_slices(s, lane, slice->start_ns);
		if (lane->innermost == TRACE_NONE ||
		    s->list[lane->innermost].end_ns >= slice->end_ns)
			return lane;
	}
	return add_lane(s, slice, thread);
}

/* The slices of one thread and kind: from first up to end, without end. */
static int add_slices(struct slices *s, uint32_t thread, size_t first, size_t end)
{
	s->n_lanes = 0;
	for (size_t i = first; i < end; i++) {
		struct slice *slice = &s->list[i];
		struct lane *lane = lane_for(s, slice, thread);

		if (!lane)
			return -1;
		if (slice->kind == PROFILE_PHASE_GAP && slice->phase != s->first_gap)
			trace_add_event(s->b, thread, TRACE_INSTANT, slice->start_ns, slice->phase);
		trace_add_event(s->b, lane->track, TRACE_BEGIN, slice->start_ns, slice->phase);
		slice->outer = lane->innermost;
		lane->innermost = (uint32_t)i;
	}
	for (size_t i = 0; i < s->n_lanes; i++)
		end_slices(s, &s->lanes[i], UINT64_MAX);
	return 0;
}

/* ---- Threads ---- */

/* The track of a thread, or one for the phases of which the file does not name the thread. */
static uint32_t add_thread(struct trace_builder *b, const struct slice *slice, uint32_t process)
{
	const struct recording_process *owner =
		slice->process == TRACE_NONE ? NULL : &b->r->processes[slice->process];
	struct trace_track track = {
		.kind = TRACE_LANE,
		.parent = process,
		.pid = slice->pid,
		.tid = slice->tid,
		.process = owner,
		.name = "phases",
	};

	if (slice->pid && slice->tid) {
		track.kind = TRACE_THREAD;
		track.pid_reused = trace_process_at(b, slice->pid, 0) !=
				   trace_process_at(b, slice->pid, UINT64_MAX);
		/* The kernel names the first thread as the process. */
		track.name = owner && slice->tid == slice->pid ? owner->comm : NULL;
	}
	return trace_add_track(b, track);
}

/*
 * The track of the process that slice i belongs to: a new one for a process that the file does not
 * list, the run's if the file does not say. before: the track of the slice before it.
 */
static uint32_t process_track(struct slices *s, size_t i, uint32_t before)
{
	const struct slice *slice = &s->list[i];

	if (slice->process != TRACE_NONE)
		return s->b->process_track[slice->process];
	if (!slice->pid)
		return 0;
	if (i && s->list[i - 1].pid == slice->pid)
		return before;
	return trace_add_process(s->b, slice->pid, NULL);
}

static int add_threads(struct slices *s)
{
	uint32_t process = 0, thread = 0;
	size_t end;

	for (size_t i = 0; i < s->n; i = end) {
		const struct slice *slice = &s->list[i];

		if (!i || !same_thread(slice - 1, slice)) {
			process = process_track(s, i, process);
			thread = process == TRACE_NONE ? TRACE_NONE
						       : add_thread(s->b, slice, process);
		}
		if (thread == TRACE_NONE)
			return -1;
		for (end = i + 1; end < s->n; end++) {
			if (!same_thread(slice, &s->list[end]) || s->list[end].kind != slice->kind)
				break;
		}
		if (add_slices(s, thread, i, end))
			return -1;
	}
	return 0;
}

int trace_add_phases(struct trace_builder *b, const struct render_options *options)
{
	struct slices *s = calloc(1, sizeof(*s));
	struct slice *list = calloc(b->r->n_phases + 1, sizeof(*list));
	int failed;

	if (s && list) {
		s->b = b;
		s->list = list;
		list_slices(s, options);
		failed = add_threads(s);
	} else {
		failed = trace_no_memory(b);
	}
	free(list);
	free(s);
	return failed;
}
