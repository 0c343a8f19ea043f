/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/text.h"
#include "base/units.h"
#include "format/fields.h"
#include "report/trace_build.h"

enum { MAX_COMMAND = 4096, MAX_DEFINITIONS = 65536 };

int trace_no_memory(struct trace_builder *b)
{
	return error_set(b->err, "out of memory for the tracks and events of this profile");
}

/* ---- Tracks and events ---- */

uint32_t trace_add_track(struct trace_builder *b, struct trace_track track)
{
	struct trace *t = b->t;

	struct trace_track *tracks =
		array_reserve(t->tracks, t->n_tracks, &b->max_tracks, sizeof(*tracks));

	if (!tracks) {
		trace_no_memory(b);
		return TRACE_NONE;
	}
	t->tracks = tracks;
	if (track.parent == TRACE_NONE)
		track.parent = (uint32_t)t->n_tracks;
	track.first_value = (uint32_t)t->n_values;
	t->n_values += track.counters.n_names;
	t->tracks[t->n_tracks] = track;
	return (uint32_t)t->n_tracks++;
}

struct trace_event *trace_add_event(struct trace_builder *b, uint32_t track,
				    enum trace_event_type type, uint64_t time_ns, uint32_t item)
{
	struct trace *t = b->t;
	struct trace_event *event = &t->events[t->n_events];

	*event = (struct trace_event){
		.time_ns = time_ns,
		.order = (uint32_t)t->n_events,
		.track = track,
		.item = item,
		.type = type,
	};
	t->n_events++;
	return event;
}

/*
 * No trace has more: the run has three; a process has two for its life and one for the end of its
 * memory; a phase begins, ends, and may have a mark; a row, or a
 * point of the curve, has a value for each group, and a curve has a value of two rates for each
 * stretch and at its end; a metric has one value each time; so has each sum of a file.
 */
static size_t count_events(const struct recording *r)
{
	size_t n = 3 + r->n_points + r->n_gpu_curve + r->n_tracks + 3 * r->n_processes +
		   3 * r->n_phases + QUANTITY_GROUPS * (r->n_curve ? r->n_curve : r->n_steps) +
		   r->n_summaries;

	if (r->n_curve)
		n += 2 * (r->n_curve + 1);

	for (size_t i = 0; i < r->n_steps; i++)
		n += r->steps[i].n_metrics;
	for (size_t i = 0; i < r->n_files; i++)
		n += TRACE_FILE_SUMS * r->files[i].n_points;
	return n;
}

/* ---- The run ---- */

/* Texts with something between them, in at most size bytes; the caller frees them. */
static char *joined(char *const *texts, size_t n, const char *between, size_t size)
{
	char *line = malloc(size);
	size_t len = 0;

	if (!line)
		return NULL;
	line[0] = '\0';
	for (size_t i = 0; i < n && len < size - 1; i++) {
		const int more =
			snprintf(line + len, size - len, "%s%s", i ? between : "", texts[i]);

		len += (size_t)more < size - len ? (size_t)more : size - 1 - len;
	}
	line[text_whole(line, len)] = '\0';
	return line;
}

/* Returns whether any row has a value of the quantity. */
static bool steps_say(const struct recording *r, const struct quantity *quantity)
{
	const size_t field = field_find(&record_step, quantity->key, strlen(quantity->key));

	for (size_t i = 0; quantity->everywhere && i < r->n_steps; i++) {
		if (field_has(&record_step, &r->steps[i], field))
			return true;
	}
	return false;
}

static int add_run(struct trace_builder *b)
{
	const struct recording *r = b->r;
	struct trace *t = b->t;
	char peak[UNITS_TEXT_MAX];
	uint64_t peak_ns;

	t->command = joined(r->run.command, r->run.n_command, " ", MAX_COMMAND);
	t->definitions = joined(r->definitions, r->n_definitions, "\n", MAX_DEFINITIONS);
	recording_ending(r, &t->ending);
	for (size_t i = 0; i < N_QUANTITIES; i++)
		t->says[quantities[i].group] |= steps_say(r, &quantities[i]);
	if (!t->command || !t->definitions)
		return trace_no_memory(b);
	if (trace_add_track(b, (struct trace_track){.kind = TRACE_RUN,
						    .parent = TRACE_NONE,
						    .name = "All processes"}) == TRACE_NONE)
		return -1;
	trace_add_event(b, 0, TRACE_BEGIN, 0, TRACE_NONE);
	if (recording_peak_time(r, &peak_ns) && r->totals.peak_rss) {
		snprintf(t->peak_name, sizeof(t->peak_name), "peak %s",
			 units_bytes_for_people(peak, r->totals.peak_rss));
		trace_add_event(b, 0, TRACE_INSTANT, peak_ns, TRACE_NONE);
	}
	return 0;
}

/* The run ends with its last event: a duration is rounded more coarsely than times are. */
static void end_run(struct trace_builder *b)
{
	uint64_t end_ns = b->r->totals.duration_ns;

	for (size_t i = 0; i < b->t->n_events; i++) {
		if (b->t->events[i].time_ns > end_ns)
			end_ns = b->t->events[i].time_ns;
	}
	trace_add_event(b, 0, TRACE_END, end_ns, TRACE_NONE);
}

/* ---- Processes ---- */

static int by_pid(const void *x, const void *y, void *context)
{
	const struct recording_process *processes = context;
	const uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
	const struct recording_process *a = &processes[i], *b = &processes[k];

	TRACE_ORDER(a->pid, b->pid);
	TRACE_ORDER(a->start_ns, b->start_ns);
	TRACE_ORDER(i, k);
	return 0;
}

uint32_t trace_process_at(const struct trace_builder *b, uint32_t pid, uint64_t time_ns)
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
	return TRACE_NONE;
}

uint32_t trace_add_process(struct trace_builder *b, uint32_t pid,
			   const struct recording_process *process)
{
	return trace_add_track(b, (struct trace_track){.kind = TRACE_PROCESS,
						       .parent = TRACE_NONE,
						       .pid = pid,
						       .process = process});
}

static void add_life(struct trace_builder *b, uint32_t track, uint32_t index)
{
	const struct recording_process *process = &b->r->processes[index];
	uint64_t end_ns = process->ended ? process->end_ns : b->r->totals.duration_ns;

	if (end_ns < process->start_ns)
		end_ns = process->start_ns;
	trace_add_event(b, track, TRACE_BEGIN, process->start_ns, index);
	trace_add_event(b, track, TRACE_END, end_ns, index);
}

static int add_processes(struct trace_builder *b)
{
	const struct recording *r = b->r;

	for (uint32_t i = 0; i < r->n_processes; i++) {
		const uint32_t track = trace_add_process(b, r->processes[i].pid, &r->processes[i]);

		if (track == TRACE_NONE)
			return -1;
		b->process_track[i] = track;
		add_life(b, track, i);
	}
	return 0;
}

/* ---- The whole ---- */

static int by_time(const void *x, const void *y)
{
	const struct trace_event *a = x, *b = y;

	TRACE_ORDER(a->time_ns, b->time_ns);
	TRACE_ORDER(a->order, b->order);
	return 0;
}

static int allocate(struct trace_builder *b)
{
	const struct recording *r = b->r;
	const size_t max_events = count_events(r);

	if (max_events >= UINT32_MAX)
		return error_set(b->err, "more than %u events: too many to be shown", UINT32_MAX);
	b->t->events = calloc(max_events, sizeof(*b->t->events));
	b->by_pid = calloc(r->n_processes + 1, sizeof(*b->by_pid));
	b->process_track = calloc(r->n_processes + 1, sizeof(*b->process_track));
	if (rates_have_curve(r))
		b->t->rates = rates_over_time(r, r->n_curve, &b->t->n_rates);
	if (!b->t->events || !b->by_pid || !b->process_track ||
	    (rates_have_curve(r) && !b->t->rates))
		return trace_no_memory(b);
	for (uint32_t i = 0; i < r->n_processes; i++)
		b->by_pid[i] = i;
	qsort_r(b->by_pid, r->n_processes, sizeof(*b->by_pid), by_pid, r->processes);
	return 0;
}

static int build(struct trace_builder *b, const struct render_options *options)
{
	struct trace *t = b->t;

	if (allocate(b) || add_run(b) || trace_add_tree_counters(b) || add_processes(b) ||
	    trace_add_process_counters(b) || trace_add_phases(b, options))
		return -1;
	end_run(b);
	qsort(t->events, t->n_events, sizeof(*t->events), by_time);
	t->last = calloc(t->n_values + 1, sizeof(*t->last));
	return t->last ? 0 : trace_no_memory(b);
}

int trace_build(struct trace *t, const struct recording *r, const struct render_options *options,
		struct error *err)
{
	struct trace_builder b = {.t = t, .r = r, .err = err};
	int failed;

	*t = (struct trace){.recording = r};
	failed = build(&b, options);
	free(b.by_pid);
	free(b.process_track);
	return failed;
}

void trace_free(struct trace *t)
{
	free(t->tracks);
	free(t->rates);
	free(t->events);
	free(t->last);
	free(t->command);
	free(t->definitions);
	arena_free(t->names);
	*t = (struct trace){0};
}
