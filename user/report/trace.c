/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "format/fields.h"
#include "base/text.h"
#include "base/units.h"

enum {
	NONE = UINT32_MAX,
	MAX_COMMAND = 4096,
	/* Phases of one thread that cross each other; the model has no more open at a time. */
	MAX_LANES = PROFILE_MAX_DEPTH,
};

/* Where the numbers of a track of counters are from; event.item is an index into it. */
enum source {
	FROM_POINTS,
	FROM_TRACKS,
	FROM_CALLS, /* of steps, as the following ones */
	FROM_STORAGE,
	FROM_CPU,
	FROM_METRICS,
};

static const struct trace_counters memory_counters = {
	TRACE_BYTES,
	5,
	3,
	{"memory", "memory: file", "memory: anon", "memory: shmem", "swap"},
};

static const struct trace_counters usage_counters[] = {
	[FROM_CALLS] = {TRACE_BYTES, 2, 0, {"read by calls", "written by calls"}},
	[FROM_STORAGE] = {TRACE_BYTES, 2, 0, {"read from storage", "written to storage"}},
	[FROM_CPU] = {TRACE_NS, 1, 0, {"CPU time"}},
};

/* A phase, for those of a thread to be put together. */
struct ref {
	uint32_t pid, process, tid; /* process: index in the recording, or NONE */
	uint32_t phase;		    /* likewise */
	uint32_t below;		    /* the ref whose slice this one's stands in, or NONE */
	uint32_t kind;		    /* as it has */
	uint64_t start_ns, end_ns;
};

struct lane {
	uint32_t top; /* the ref that began last and is still open, or NONE */
	uint32_t track;
};

struct metric_track {
	const char *name;
	uint32_t track;
	UT_hash_handle hh;
};

struct builder {
	struct trace *t;
	const struct recording *r;
	size_t max_tracks, max_events;
	uint32_t *by_pid;	 /* indices of processes, in order of pid, then of start */
	uint32_t *process_track; /* by index of the process */
	struct ref *refs;
	size_t n_refs;
	struct lane lanes[MAX_LANES];
	size_t n_lanes;
	uint32_t first_gap; /* phase; from the start of the run, so no mark begins it */
	struct metric_track *metrics;
	struct error *err;
};

static int no_memory(struct builder *b)
{
	error_set(b->err, "out of memory for the tracks and events of this profile");
	return -1;
}

/* ---- Tracks and events ---- */

/* Index of the new track, or NONE. */
static uint32_t add_track(struct builder *b, struct trace_track track)
{
	struct trace *t = b->t;

	if (t->n_tracks == b->max_tracks) {
		const size_t max = b->max_tracks ? 2 * b->max_tracks : 64;
		struct trace_track *tracks = reallocarray(t->tracks, max, sizeof(*tracks));

		if (!tracks) {
			no_memory(b);
			return NONE;
		}
		t->tracks = tracks;
		b->max_tracks = max;
	}
	if (track.parent == NONE)
		track.parent = (uint32_t)t->n_tracks;
	track.first_value = (uint32_t)t->n_values;
	t->n_values += track.counters.n_names;
	t->tracks[t->n_tracks] = track;
	return (uint32_t)t->n_tracks++;
}

static uint32_t add_counters(struct builder *b, uint32_t parent, enum source source,
			     const struct trace_counters *counters)
{
	const struct trace_track *of = &b->t->tracks[parent];

	return add_track(b, (struct trace_track){
				    .kind = TRACE_COUNTERS,
				    .parent = parent,
				    .pid = of->pid,
				    .process = of->process,
				    .source = source,
				    .counters = *counters,
			    });
}

/* There is room: see count_events. */
static void add_event(struct builder *b, uint32_t track, enum trace_event_type type,
		      uint64_t time_ns, uint32_t item)
{
	struct trace *t = b->t;

	t->events[t->n_events] = (struct trace_event){
		.time_ns = time_ns,
		.order = (uint32_t)t->n_events,
		.track = track,
		.item = item,
		.type = type,
	};
	t->n_events++;
}

/* The most that there can be. */
static size_t count_events(const struct recording *r)
{
	size_t n = 3 + r->n_points + r->n_tracks + 3 * r->n_processes + 3 * r->n_phases +
		   3 * r->n_steps;

	for (size_t i = 0; i < r->n_steps; i++)
		n += r->steps[i].n_metrics;
	return n;
}

/* ---- The tree ---- */

static char *one_line(char *const *texts, size_t n)
{
	char *line = malloc(MAX_COMMAND);
	size_t len = 0;

	if (!line)
		return NULL;
	line[0] = '\0';
	for (size_t i = 0; i < n && len < MAX_COMMAND - 1; i++) {
		const int more =
			snprintf(line + len, MAX_COMMAND - len, "%s%s", i ? " " : "", texts[i]);

		len += (size_t)more < MAX_COMMAND - len ? (size_t)more : MAX_COMMAND - 1 - len;
	}
	line[text_whole(line, len)] = '\0';
	return line;
}

/* Whether any row has a value of that key. */
static bool steps_say(const struct recording *r, const char *key)
{
	const size_t field = field_find(&record_step, key, strlen(key));

	for (size_t i = 0; i < r->n_steps; i++) {
		if (field_has(&record_step, &r->steps[i], field))
			return true;
	}
	return false;
}

/* Most runs swap nothing; and of rows alone it is not known of what kind memory was. */
static struct trace_counters memory_names(const struct recording *r)
{
	struct trace_counters counters = memory_counters;
	bool swap = false;

	for (size_t i = 0; i < r->n_points && !swap; i++)
		swap = r->points[i].swap != 0;
	for (size_t i = 0; i < r->n_tracks && !swap; i++)
		swap = r->tracks[i].swap != 0;
	if (!swap)
		counters.n_names--;
	if (r->derived.points) {
		counters.n_names = 1;
		counters.n_parts = 0;
	}
	return counters;
}

static int add_usage(struct builder *b, enum source source, bool said)
{
	uint32_t track;

	if (!said)
		return 0;
	track = add_counters(b, 0, source, &usage_counters[source]);
	if (track == NONE)
		return -1;
	for (uint32_t i = 0; i < b->r->n_steps; i++)
		add_event(b, track, TRACE_VALUES, b->r->steps[i].rel_ns, i);
	return 0;
}

static int add_points(struct builder *b, uint32_t parent)
{
	const struct trace_counters names = memory_names(b->r);
	const uint32_t track = add_counters(b, parent, FROM_POINTS, &names);

	if (track == NONE)
		return -1;
	for (uint32_t i = 0; i < b->r->n_points; i++)
		add_event(b, track, TRACE_VALUES, b->r->points[i].time_ns, i);
	return 0;
}

/* Then the memory of the tree is its memory, and shown once. */
static bool only_one_process(const struct recording *r)
{
	return r->n_processes == 1 && !r->n_tracks && r->n_points && !r->derived.points;
}

static int add_tree(struct builder *b)
{
	const struct recording *r = b->r;
	struct trace *t = b->t;
	char peak[UNITS_TEXT_MAX];
	uint64_t peak_ns;

	t->command = one_line(r->run.command, r->run.n_command);
	t->says_calls = steps_say(r, "io_read_mb");
	t->says_storage = steps_say(r, "disk_read_mb");
	t->says_cpu = steps_say(r, "cpu_time_secs");
	if (!t->command)
		return no_memory(b);
	if (add_track(b, (struct trace_track){.kind = TRACE_RUN,
					      .parent = NONE,
					      .name = "All processes"}) == NONE)
		return -1;
	add_event(b, 0, TRACE_BEGIN, 0, NONE);
	if (recording_peak_time(r, &peak_ns) && r->totals.peak_rss) {
		snprintf(t->peak_name, sizeof(t->peak_name), "peak %s",
			 units_bytes_for_people(peak, r->totals.peak_rss));
		add_event(b, 0, TRACE_INSTANT, peak_ns, NONE);
	}
	if (r->n_points && !only_one_process(r) && add_points(b, 0))
		return -1;
	if (add_usage(b, FROM_CALLS, t->says_calls) ||
	    add_usage(b, FROM_STORAGE, t->says_storage) || add_usage(b, FROM_CPU, t->says_cpu))
		return -1;
	return 0;
}

/* The run ends with whatever ends last: a duration is rounded more coarsely than times are. */
static void end_run(struct builder *b)
{
	uint64_t end_ns = b->r->totals.duration_ns;

	for (size_t i = 0; i < b->t->n_events; i++) {
		if (b->t->events[i].time_ns > end_ns)
			end_ns = b->t->events[i].time_ns;
	}
	add_event(b, 0, TRACE_END, end_ns, NONE);
}

/* ---- Metrics ---- */

static bool can_be_drawn(const struct profile_metric *metric)
{
	return metric->kind != PROFILE_UNREADABLE &&
	       (metric->kind != PROFILE_DOUBLE || isfinite(metric->d));
}

static uint32_t metric_track(struct builder *b, const char *name)
{
	struct metric_track *found;

	HASH_FIND_STR(b->metrics, name, found);
	if (found)
		return found->track;
	found = malloc(sizeof(*found));
	if (!found) {
		no_memory(b);
		return NONE;
	}
	found->name = name;
	found->track = add_counters(b, 0, FROM_METRICS,
				    &(struct trace_counters){TRACE_COUNT, 1, 0, {name}});
	HASH_ADD_KEYPTR(hh, b->metrics, found->name, strlen(found->name), found);
	return found->track;
}

static int add_metrics(struct builder *b)
{
	const struct recording *r = b->r;

	for (uint32_t i = 0; i < r->n_steps; i++) {
		for (uint32_t k = 0; k < r->steps[i].n_metrics; k++) {
			const struct profile_metric *metric = &r->steps[i].metrics[k];
			uint32_t track;

			if (!can_be_drawn(metric))
				continue;
			track = metric_track(b, metric->name);
			if (track == NONE)
				return -1;
			add_event(b, track, TRACE_VALUES, r->steps[i].rel_ns, i);
			b->t->events[b->t->n_events - 1].metric = k & ((1u << 30) - 1);
		}
	}
	return 0;
}

/* ---- Processes ---- */

static uint32_t add_process_track(struct builder *b, uint32_t pid,
				  const struct recording_process *process)
{
	return add_track(
		b, (struct trace_track){
			   .kind = TRACE_PROCESS, .parent = NONE, .pid = pid, .process = process});
}

static void add_life(struct builder *b, uint32_t track, uint32_t index)
{
	const struct recording_process *process = &b->r->processes[index];
	uint64_t end_ns = process->ended ? process->end_ns : b->r->totals.duration_ns;

	if (end_ns < process->start_ns)
		end_ns = process->start_ns;
	add_event(b, track, TRACE_BEGIN, process->start_ns, index);
	add_event(b, track, TRACE_END, end_ns, index);
}

/* Whoever has exited has nothing any more. */
static void end_memory(struct builder *b, uint32_t track, uint64_t last_ns)
{
	const struct recording_process *process = b->t->tracks[track].process;

	if (process->ended)
		add_event(b, track, TRACE_VALUES,
			  process->end_ns > last_ns ? process->end_ns : last_ns, NONE);
}

/* Timelines of processes are in order of process. */
static int add_process_memory(struct builder *b)
{
	const struct recording *r = b->r;
	const struct trace_counters names = memory_names(r);
	uint32_t i = 0;

	while (i < r->n_tracks && r->tracks[i].process < r->n_processes) {
		const uint32_t process = r->tracks[i].process;
		const uint32_t track =
			add_counters(b, b->process_track[process], FROM_TRACKS, &names);

		if (track == NONE)
			return -1;
		for (; i < r->n_tracks && r->tracks[i].process == process; i++)
			add_event(b, track, TRACE_VALUES, r->tracks[i].time_ns, i);
		end_memory(b, track, r->tracks[i - 1].time_ns);
	}
	return 0;
}

static int add_only_process(struct builder *b)
{
	const struct recording *r = b->r;

	if (add_points(b, b->process_track[0]))
		return -1;
	end_memory(b, (uint32_t)b->t->n_tracks - 1, r->points[r->n_points - 1].time_ns);
	return 0;
}

static int add_processes(struct builder *b)
{
	const struct recording *r = b->r;

	for (uint32_t i = 0; i < r->n_processes; i++) {
		b->process_track[i] = add_process_track(b, r->processes[i].pid, &r->processes[i]);
		if (b->process_track[i] == NONE)
			return -1;
		add_life(b, b->process_track[i], i);
	}
	if (only_one_process(r))
		return add_only_process(b);
	return add_process_memory(b);
}

/* ---- Phases and marks ---- */

static int by_pid(const void *x, const void *y, void *context)
{
	const struct recording_process *processes = context;
	const uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
	const struct recording_process *a = &processes[i], *b = &processes[k];

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (i > k) - (i < k);
}

/*
 * Which of the processes that had this pid it was: the one that began last by then. The first of
 * them, if that is later; NONE if there is none.
 */
static uint32_t process_at(const struct builder *b, uint32_t pid, uint64_t time_ns)
{
	const struct recording_process *processes = b->r->processes;
	size_t low = 0, high = b->r->n_processes;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct recording_process *process = &processes[b->by_pid[middle]];

		if (process->pid < pid || (process->pid == pid && process->start_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	if (low && processes[b->by_pid[low - 1]].pid == pid)
		return b->by_pid[low - 1];
	if (low < b->r->n_processes && processes[b->by_pid[low]].pid == pid)
		return b->by_pid[low];
	return NONE;
}

#define ORDER(a, b)                                                                                \
	do {                                                                                       \
		if ((a) != (b))                                                                    \
			return (a) < (b) ? -1 : 1;                                                 \
	} while (0)

/* Those of a thread together, pairs before gaps; of those that begin at once, the longest first. */
static int by_thread(const void *x, const void *y)
{
	const struct ref *a = x, *b = y;

	ORDER(a->pid, b->pid);
	ORDER(a->process, b->process);
	ORDER(a->tid, b->tid);
	ORDER(a->kind, b->kind);
	ORDER(a->start_ns, b->start_ns);
	ORDER(b->end_ns, a->end_ns);
	ORDER(a->phase, b->phase);
	return 0;
}

static bool same_thread(const struct ref *a, const struct ref *b)
{
	return a->pid == b->pid && a->process == b->process && a->tid == b->tid;
}

static void refer_to_phases(struct builder *b, const struct render_options *options)
{
	const struct recording *r = b->r;

	b->first_gap = NONE;
	for (uint32_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (phase->kind == PROFILE_PHASE_GAP && b->first_gap == NONE)
			b->first_gap = i;
		if (!render_wants_phase(options, phase))
			continue;
		b->refs[b->n_refs++] = (struct ref){
			.pid = phase->pid,
			.process = process_at(b, phase->pid, phase->start_ns),
			.tid = phase->pid ? phase->tid : 0,
			.phase = i,
			.below = NONE,
			.kind = phase->kind,
			.start_ns = phase->start_ns,
			.end_ns = phase->start_ns + phase->duration_ns,
		};
	}
	qsort(b->refs, b->n_refs, sizeof(*b->refs), by_thread);
}

/* Slices of a lane that are over by then end. */
static void end_slices(struct builder *b, struct lane *lane, uint64_t time_ns)
{
	while (lane->top != NONE && b->refs[lane->top].end_ns <= time_ns) {
		const struct ref *top = &b->refs[lane->top];

		add_event(b, lane->track, TRACE_END, top->end_ns, top->phase);
		lane->top = top->below;
	}
}

static uint32_t add_lane_track(struct builder *b, uint32_t home, const char *name)
{
	const struct trace_track *track = &b->t->tracks[home];

	return add_track(b, (struct trace_track){.kind = TRACE_LANE,
						 .parent = home,
						 .pid = track->pid,
						 .tid = track->tid,
						 .process = track->process,
						 .name = name});
}

/* The first lane where the ref's slice ends before the one that it stands in does. */
static struct lane *lane_for(struct builder *b, const struct ref *ref, uint32_t home)
{
	struct lane *lane;

	for (size_t i = 0; i < b->n_lanes; i++) {
		lane = &b->lanes[i];
		end_slices(b, lane, ref->start_ns);
		if (lane->top == NONE || b->refs[lane->top].end_ns >= ref->end_ns)
			return lane;
	}
	if (b->n_lanes == MAX_LANES) {
		error_set(b->err,
			  "more than %d phases of thread %u cross each other: no viewer "
			  "shows that; leave some out with --phase",
			  MAX_LANES, ref->tid);
		return NULL;
	}
	lane = &b->lanes[b->n_lanes];
	*lane = (struct lane){.top = NONE};
	if (b->n_lanes || ref->kind == PROFILE_PHASE_GAP)
		lane->track = add_lane_track(b, home,
					     ref->kind == PROFILE_PHASE_GAP ? "between marks"
									    : "crossing phases");
	else
		lane->track = home;
	if (lane->track == NONE)
		return NULL;
	b->n_lanes++;
	return lane;
}

/* Phases of one thread and kind, from first up to end. */
static int add_slices(struct builder *b, uint32_t home, size_t first, size_t end)
{
	b->n_lanes = 0;
	for (size_t i = first; i < end; i++) {
		struct ref *ref = &b->refs[i];
		struct lane *lane = lane_for(b, ref, home);

		if (!lane)
			return -1;
		if (ref->kind == PROFILE_PHASE_GAP && ref->phase != b->first_gap)
			add_event(b, home, TRACE_INSTANT, ref->start_ns, ref->phase);
		add_event(b, lane->track, TRACE_BEGIN, ref->start_ns, ref->phase);
		ref->below = lane->top;
		lane->top = (uint32_t)i;
	}
	for (size_t i = 0; i < b->n_lanes; i++)
		end_slices(b, &b->lanes[i], UINT64_MAX);
	return 0;
}

/* The track of a thread; where the file does not say whose a phase is, one of the tree. */
static uint32_t add_thread(struct builder *b, const struct ref *ref, uint32_t process)
{
	const struct recording_process *owner =
		ref->process == NONE ? NULL : &b->r->processes[ref->process];
	struct trace_track track = {
		.kind = TRACE_LANE,
		.parent = process,
		.pid = ref->pid,
		.tid = ref->tid,
		.process = owner,
		.name = "phases",
	};

	if (ref->pid && ref->tid) {
		track.kind = TRACE_THREAD;
		track.pid_reused =
			process_at(b, ref->pid, 0) != process_at(b, ref->pid, UINT64_MAX);
		/* The kernel's name of the first thread is that of the process. */
		track.name = owner && ref->tid == ref->pid ? owner->comm : NULL;
	}
	return add_track(b, track);
}

/* Phases of a process that the file does not list, or says nothing of, are not lost. */
static uint32_t process_track_of(struct builder *b, size_t i, uint32_t before)
{
	const struct ref *ref = &b->refs[i];

	if (ref->process != NONE)
		return b->process_track[ref->process];
	if (!ref->pid)
		return 0;
	if (i && b->refs[i - 1].pid == ref->pid)
		return before;
	return add_process_track(b, ref->pid, NULL);
}

static int add_phases(struct builder *b)
{
	uint32_t process = 0, thread = 0;
	size_t end;

	for (size_t i = 0; i < b->n_refs; i = end) {
		const struct ref *ref = &b->refs[i];

		if (!i || !same_thread(ref - 1, ref)) {
			process = process_track_of(b, i, process);
			thread = process == NONE ? NONE : add_thread(b, ref, process);
		}
		if (thread == NONE)
			return -1;
		for (end = i + 1; end < b->n_refs; end++) {
			if (!same_thread(ref, &b->refs[end]) || b->refs[end].kind != ref->kind)
				break;
		}
		if (add_slices(b, thread, i, end))
			return -1;
	}
	return 0;
}

/* ---- All of it ---- */

static int by_time(const void *x, const void *y)
{
	const struct trace_event *a = x, *b = y;

	ORDER(a->time_ns, b->time_ns);
	ORDER(a->order, b->order);
	return 0;
}

static int allocate(struct builder *b)
{
	const struct recording *r = b->r;

	b->max_events = count_events(r);
	if (b->max_events >= UINT32_MAX) {
		error_set(b->err, "more than %u events: too many to be shown", UINT32_MAX);
		return -1;
	}
	b->t->events = calloc(b->max_events, sizeof(*b->t->events));
	b->by_pid = calloc(r->n_processes + 1, sizeof(*b->by_pid));
	b->process_track = calloc(r->n_processes + 1, sizeof(*b->process_track));
	b->refs = calloc(r->n_phases + 1, sizeof(*b->refs));
	if (!b->t->events || !b->by_pid || !b->process_track || !b->refs)
		return no_memory(b);
	for (uint32_t i = 0; i < r->n_processes; i++)
		b->by_pid[i] = i;
	qsort_r(b->by_pid, r->n_processes, sizeof(*b->by_pid), by_pid, r->processes);
	return 0;
}

static int fill(struct builder *b, const struct render_options *options)
{
	if (allocate(b))
		return -1;
	refer_to_phases(b, options);
	if (add_tree(b) || add_metrics(b) || add_processes(b) || add_phases(b))
		return -1;
	end_run(b);
	qsort(b->t->events, b->t->n_events, sizeof(*b->t->events), by_time);
	b->t->last = calloc(b->t->n_values + 1, sizeof(*b->t->last));
	return b->t->last ? 0 : no_memory(b);
}

int trace_build(struct trace *t, const struct recording *r, const struct render_options *options,
		struct error *err)
{
	struct builder *b = calloc(1, sizeof(*b));
	struct metric_track *metric, *next;
	int failed;

	*t = (struct trace){.recording = r};
	if (!b)
		return error_set(err, "out of memory for the tracks and events of this profile");
	b->t = t;
	b->r = r;
	b->err = err;
	failed = fill(b, options);
	HASH_ITER (hh, b->metrics, metric, next) {
		HASH_DEL(b->metrics, metric);
		free(metric);
	}
	free(b->by_pid);
	free(b->process_track);
	free(b->refs);
	free(b);
	return failed;
}

void trace_free(struct trace *t)
{
	free(t->tracks);
	free(t->events);
	free(t->last);
	free(t->command);
	*t = (struct trace){0};
}

/* ---- What an event says ---- */

static const struct trace_track *track_of(const struct trace *t, const struct trace_event *event)
{
	return &t->tracks[event->track];
}

const char *trace_name(const struct trace *t, const struct trace_event *event)
{
	switch (track_of(t, event)->kind) {
	case TRACE_RUN:
		return event->type == TRACE_INSTANT ? t->peak_name : "run";
	case TRACE_PROCESS:
		return t->recording->processes[event->item].comm;
	case TRACE_THREAD:
	case TRACE_LANE:
		return t->recording->phases[event->item].name;
	case TRACE_COUNTERS:
		break;
	}
	return "";
}

const char *trace_category(const struct trace *t, const struct trace_event *event)
{
	switch (track_of(t, event)->kind) {
	case TRACE_RUN:
		return event->type == TRACE_INSTANT ? "peak" : "run";
	case TRACE_PROCESS:
		return "process";
	case TRACE_THREAD:
	case TRACE_LANE:
		return event->type == TRACE_INSTANT ? "mark" : "phase";
	case TRACE_COUNTERS:
		break;
	}
	return "";
}

struct args {
	struct trace_arg *list;
	size_t n;
};

static void put_text(struct args *args, const char *name, const char *text)
{
	if (text && *text)
		args->list[args->n++] = (struct trace_arg){.name = name, .text = text};
}

static void put_number(struct args *args, const char *name, int64_t number)
{
	args->list[args->n++] = (struct trace_arg){.name = name, .number = number};
}

static void put_usage(const struct trace *t, struct args *args, const struct profile_usage *usage)
{
	if (t->says_calls) {
		put_number(args, "io_read_bytes", (int64_t)usage->io_read);
		put_number(args, "io_write_bytes", (int64_t)usage->io_write);
	}
	if (t->says_storage) {
		put_number(args, "disk_read_bytes", (int64_t)usage->disk_read);
		put_number(args, "disk_write_bytes", (int64_t)usage->disk_write);
	}
	if (t->says_cpu)
		put_number(args, "cpu_time_ns", (int64_t)usage->cpu_ns);
}

static void put_run(const struct trace *t, struct args *args)
{
	const struct recording *r = t->recording;

	put_text(args, "command", t->command);
	put_text(args, "hostname", r->run.hostname);
	put_text(args, "kernel", r->run.kernel);
	put_text(args, "qprof_bpf_version", r->run.version);
	put_text(args, "incomplete", r->partial ? r->partial_text : NULL);
	put_number(args, "peak_memory_bytes", (int64_t)r->totals.peak_rss);
	put_usage(t, args, &r->totals.usage);
}

static void put_peak(const struct trace *t, struct args *args)
{
	const struct recording *r = t->recording;
	const struct recording_phase *phase = recording_peak_phase(r);
	const struct recording_share *share = r->peak.n_shares ? &r->peak.shares[0] : NULL;

	put_number(args, "memory_bytes", (int64_t)r->totals.peak_rss);
	put_text(args, "phase", phase ? phase->name : NULL);
	if (!r->peak.has)
		return;
	put_number(args, "file_bytes", (int64_t)r->peak.file);
	put_number(args, "anon_bytes", (int64_t)r->peak.anon);
	put_number(args, "shmem_bytes", (int64_t)r->peak.shmem);
	put_number(args, "swap_bytes", (int64_t)r->peak.swap);
	if (!share)
		return;
	if (share->process < r->n_processes) {
		put_text(args, "largest_process", r->processes[share->process].comm);
		put_number(args, "largest_pid", r->processes[share->process].pid);
	}
	put_number(args, "largest_bytes", (int64_t)(share->file + share->anon + share->shmem));
}

static void put_process(const struct trace *t, struct args *args,
			const struct recording_process *process)
{
	put_text(args, "command", process->cmdline);
	put_number(args, "ppid", process->ppid);
	if (process->ended && process->exit_signal)
		put_number(args, "exit_signal", process->exit_signal);
	else if (process->ended)
		put_number(args, "exit_code", process->exit_code);
	put_number(args, "peak_memory_bytes", (int64_t)process->peak_rss);
	put_usage(t, args, &process->usage);
}

static void put_phase(const struct trace *t, struct args *args, const struct recording_phase *phase)
{
	put_text(args, "to", phase->to);
	put_text(args, "incomplete", phase->closed ? NULL : "the run ended before it did");
	put_number(args, "peak_memory_bytes", (int64_t)phase->peak_rss);
	put_number(args, "delta_memory_bytes", phase->delta_rss);
	put_usage(t, args, &phase->usage);
}

size_t trace_args(const struct trace *t, const struct trace_event *event, struct trace_arg *args)
{
	struct args said = {args, 0};

	switch (track_of(t, event)->kind) {
	case TRACE_RUN:
		if (event->type == TRACE_INSTANT)
			put_peak(t, &said);
		else if (event->type == TRACE_BEGIN)
			put_run(t, &said);
		break;
	case TRACE_PROCESS:
		if (event->type == TRACE_BEGIN)
			put_process(t, &said, &t->recording->processes[event->item]);
		break;
	case TRACE_THREAD:
	case TRACE_LANE:
		if (event->type == TRACE_BEGIN)
			put_phase(t, &said, &t->recording->phases[event->item]);
		break;
	case TRACE_COUNTERS:
		break;
	}
	return said.n;
}

/* ---- Numbers ---- */

static struct trace_value integer(uint64_t number)
{
	if (number > INT64_MAX)
		return (struct trace_value){.kind = TRACE_REAL, .real = (double)number};
	return (struct trace_value){.kind = TRACE_INTEGER, .integer = (int64_t)number};
}

static struct trace_value metric_value(const struct profile_metric *metric)
{
	if (metric->kind == PROFILE_DOUBLE)
		return (struct trace_value){.kind = TRACE_REAL, .real = metric->d};
	if (metric->kind == PROFILE_UINT)
		return integer(metric->u);
	return (struct trace_value){.kind = TRACE_INTEGER, .integer = metric->i};
}

static void put_memory(struct trace_value *values, uint64_t total, uint64_t file, uint64_t anon,
		       uint64_t shmem, uint64_t swap)
{
	values[0] = integer(total);
	values[1] = integer(file);
	values[2] = integer(anon);
	values[3] = integer(shmem);
	values[4] = integer(swap);
}

static void read_values(const struct recording *r, const struct trace_event *event,
			enum source source, struct trace_value *values)
{
	const uint32_t i = event->item;

	switch (source) {
	case FROM_POINTS:
		put_memory(values, recording_point_rss(&r->points[i]), r->points[i].file,
			   r->points[i].anon, r->points[i].shmem, r->points[i].swap);
		break;
	case FROM_TRACKS:
		put_memory(values, r->tracks[i].file + r->tracks[i].anon + r->tracks[i].shmem,
			   r->tracks[i].file, r->tracks[i].anon, r->tracks[i].shmem,
			   r->tracks[i].swap);
		break;
	case FROM_CALLS:
		values[0] = integer(r->steps[i].usage.io_read);
		values[1] = integer(r->steps[i].usage.io_write);
		break;
	case FROM_STORAGE:
		values[0] = integer(r->steps[i].usage.disk_read);
		values[1] = integer(r->steps[i].usage.disk_write);
		break;
	case FROM_CPU:
		values[0] = integer(r->steps[i].usage.cpu_ns);
		break;
	case FROM_METRICS:
		values[0] = metric_value(&r->steps[i].metrics[event->metric]);
		break;
	}
}

void trace_values(struct trace *t, const struct trace_event *event, struct trace_value *values)
{
	const struct trace_track *track = track_of(t, event);

	if (event->item == NONE)
		put_memory(values, 0, 0, 0, 0, 0);
	else
		read_values(t->recording, event, track->source, values);
	for (unsigned int i = 0; i < track->counters.n_names; i++) {
		struct trace_value *last = &t->last[track->first_value + i];

		values[i].changed = last->kind != values[i].kind ||
				    last->integer != values[i].integer ||
				    last->real != values[i].real;
		*last = values[i];
	}
}
