/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stacks in Perfetto's format. A profile has what each stack comes to in a phase, not when each
 * sample was taken. So a phase is a slice on a track of its own, and each of its stacks is an
 * instant at the end of that slice, with the stack and its weight: viewers draw a flame graph of
 * the instants in the area that is selected.
 *
 * Perfetto's dumps of a heap (ProfilePacket) look nearer and are not: a reader takes each for all
 * that its process has allocated so far, shows what it has more than the one before, and knows
 * bytes alone. Phases overlap, are of several processes, and use CPU time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/touched.h"
#include "report/perfetto.h"

/* Numbers of functions' names and of frames: functions, then calls at a line of Python; then: */
enum special { SPECIAL_UNKNOWN, SPECIAL_UNSAMPLED, SPECIAL_OUTSIDE, SPECIALS };

static const char *const specials[SPECIALS] = {
	[SPECIAL_UNKNOWN] = "[unknown code]",
	[SPECIAL_UNSAMPLED] = "(unsampled)",
	[SPECIAL_OUTSIDE] = "(outside of windows)",
};

static const struct {
	const char *track, *amount;
} kinds[TOUCHED_WHATS] = {
	[TOUCHED_MEMORY] = {"first touched by", "first_touched_bytes"},
	[TOUCHED_CPU] = {"CPU time by", "cpu_time_ns"},
	[TOUCHED_GPU] = {"allocated on GPUs by", "gpu_allocated_bytes"},
	[TOUCHED_BACK] = {"given back by", "given_back_bytes"},
};

/* The slice of a phase, or of the run, begins or ends. */
struct edge {
	uint64_t time_ns;
	uint32_t phase;
	enum touched_what what;
	bool is_end;
};

struct writer {
	FILE *out;
	const struct trace *t;
	const struct render_options *options;
	struct recording_stacks of[TOUCHED_WHATS];
	uint64_t *files;    /* of each function: the number of its file, 0: none */
	bool *told;	    /* of each call: its stack is written */
	struct edge *edges; /* of all slices */
	size_t n_edges;
};

static void put_on(const struct writer *w, pp_TracePacket *packet)
{
	packet->trusted_packet_sequence_id = PERFETTO_STACKS;
	packet->has_sequence_flags = true;
	if (!packet->sequence_flags)
		packet->sequence_flags = PERFETTO_SEQUENCE_GOES_ON;
	perfetto_put(w->out, packet);
}

/* ---- Names, frames and stacks, which events refer to ---- */

static uint64_t iid_of_special(const struct recording_stacks *s, enum special special)
{
	return s->n_functions + s->n_calls + 1 + special;
}

static uint64_t iid_of_call(const struct recording_stacks *s, size_t call)
{
	return s->calls[call].line ? s->n_functions + call + 1 : s->calls[call].function + 1ull;
}

static void put_frame(const struct writer *w, uint64_t iid, const char *name, uint64_t file)
{
	const bool has_file = file != 0;
	pp_TracePacket packet = {
		.has_interned_data = true,
		.interned_data = {
			.function_names_count = 1,
			.function_names = {{.has_iid = true, .iid = iid, .str = (char *)name}},
			.frames_count = 1,
			.frames = {{.has_iid = true,
				    .iid = iid,
				    .has_function_name_id = true,
				    .function_name_id = iid,
				    .has_mapping_id = has_file,
				    .mapping_id = file,
				    .has_rel_pc = has_file}},
		}};

	put_on(w, &packet);
}

/* Readers put a slash before each part of a path. */
static void put_file(const struct writer *w, uint64_t iid, const char *path)
{
	pp_TracePacket packet = {
		.has_interned_data = true,
		.interned_data = {
			.mapping_paths_count = 1,
			.mapping_paths = {{.has_iid = true, .iid = iid, .str = (char *)path + 1}},
			.mappings_count = 1,
			.mappings = {{.has_iid = true,
				      .iid = iid,
				      .path_string_ids_count = 1,
				      .path_string_ids = {iid}}},
		}};

	put_on(w, &packet);
}

static int by_path(const void *left, const void *right)
{
	const struct recording_function *a = *(const struct recording_function *const *)left;
	const struct recording_function *b = *(const struct recording_function *const *)right;

	return strcmp(a->path, b->path);
}

/* A file has the number of its first function. */
static int put_files(const struct writer *w)
{
	const struct recording_stacks *s = &w->t->recording->stacks;
	const struct recording_function **sorted = calloc(s->n_functions + 1, sizeof(*sorted));
	uint64_t file = 0;

	if (!sorted)
		return -1;
	for (size_t i = 0; i < s->n_functions; i++)
		sorted[i] = &s->functions[i];
	array_sort(sorted, s->n_functions, sizeof(*sorted), by_path);
	for (size_t i = 0; i < s->n_functions; i++) {
		const size_t function = (size_t)(sorted[i] - s->functions);

		if (*sorted[i]->path != '/')
			continue;
		if (!file || strcmp(sorted[i - 1]->path, sorted[i]->path) != 0) {
			file = function + 1;
			put_file(w, file, sorted[i]->path);
		}
		w->files[function] = file;
	}
	free(sorted);
	return 0;
}

static void put_frames(const struct writer *w)
{
	const struct recording_stacks *s = &w->t->recording->stacks;
	char name[TOUCHED_NAME_MAX];

	for (size_t i = 0; i < s->n_functions; i++)
		put_frame(w, i + 1, touched_name(name, &s->functions[i]), w->files[i]);
	for (uint32_t i = 0; i < s->n_calls; i++)
		if (s->calls[i].line)
			put_frame(w, iid_of_call(s, i), touched_call_name(name, s, i),
				  w->files[s->calls[i].function]);
}

static void put_callstack(const struct writer *w, uint64_t iid, uint64_t *frames, size_t n)
{
	pp_TracePacket packet = {.has_interned_data = true,
				 .interned_data = {
					 .callstacks_count = 1,
					 .callstacks = {{.has_iid = true,
							 .iid = iid,
							 .frame_ids_count = (pb_size_t)n,
							 .frame_ids = frames}},
				 }};

	put_on(w, &packet);
}

static void put_specials(const struct writer *w)
{
	for (unsigned int i = 0; i < SPECIALS; i++) {
		uint64_t iid = iid_of_special(&w->t->recording->stacks, i);

		put_frame(w, iid, specials[i], 0);
		put_callstack(w, iid, &iid, 1);
	}
}

/* Returns the number of the stack whose innermost call that is. */
static uint64_t tell_stack(const struct writer *w, uint32_t call)
{
	const struct recording_stacks *s = &w->t->recording->stacks;
	uint64_t frames[TOUCHED_MAX_DEPTH];
	size_t n = TOUCHED_MAX_DEPTH;

	if (!call)
		return iid_of_special(s, SPECIAL_UNKNOWN);
	if (!w->told[call]) {
		for (uint32_t at = call; at; at = s->calls[at].caller)
			frames[--n] = iid_of_call(s, at);
		put_callstack(w, call, frames + n, TOUCHED_MAX_DEPTH - n);
		w->told[call] = true;
	}
	return call;
}

/* ---- Tracks ---- */

/* Behind those of perfetto.c: a track for each kind of amount, and below that one for each phase,
 * and one for the run. */
static uint64_t uuid_of_kind(enum touched_what what)
{
	return 2ull << 32 | what;
}

static uint64_t uuid_of_phase(enum touched_what what, uint32_t phase)
{
	return (3ull + what) << 32 | (phase == TOUCHED_WHOLE_RUN ? 0 : phase + 1ull);
}

static void put_track(const struct writer *w, pp_TrackDescriptor *descriptor)
{
	pp_TracePacket packet = {.has_track_descriptor = true};

	descriptor->has_uuid = descriptor->has_parent_uuid = true;
	descriptor->has_sibling_order_rank = true;
	packet.track_descriptor = *descriptor;
	put_on(w, &packet);
}

/* Below the whole tree, behind its counters. */
static void put_kind(const struct writer *w, enum touched_what what)
{
	uint32_t run = 0;

	while (w->t->tracks[run].kind != TRACE_RUN)
		run++;
	put_track(w, &(pp_TrackDescriptor){
			     .uuid = uuid_of_kind(what),
			     .parent_uuid = perfetto_uuid_of_track(run),
			     .name = (char *)kinds[what].track,
			     .sibling_order_rank = (int32_t)(w->t->n_values + what),
			     .has_child_ordering = true,
			     .child_ordering = pp_TrackDescriptor_ChildTracksOrdering_EXPLICIT,
		     });
}

static const char *name_of(const struct writer *w, uint32_t phase)
{
	return phase == TOUCHED_WHOLE_RUN ? "run" : w->t->recording->phases[phase].shown;
}

/* Repeats of a phase are shown as one track, but those of another thread may overlap. */
static void put_phase(const struct writer *w, enum touched_what what, uint32_t phase, int32_t rank)
{
	pp_TrackDescriptor descriptor = {
		.uuid = uuid_of_phase(what, phase),
		.parent_uuid = uuid_of_kind(what),
		.name = (char *)name_of(w, phase),
		.sibling_order_rank = rank,
		.has_sibling_merge_behavior = true,
		.sibling_merge_behavior =
			pp_TrackDescriptor_SiblingMergeBehavior_SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY,
	};
	char key[TOUCHED_NAME_MAX] = "run";

	if (phase != TOUCHED_WHOLE_RUN)
		snprintf(key, sizeof(key), "%u %s", w->t->recording->phases[phase].tid,
			 descriptor.name);
	descriptor.sibling_merge_key = key;
	put_track(w, &descriptor);
}

/* ---- Events ---- */

static void put_event(const struct writer *w, const struct edge *edge, const pp_TrackEvent *event)
{
	char *category = "stacks";
	pp_TracePacket packet = {
		.has_timestamp = true,
		.timestamp = edge->time_ns,
		.has_track_event = true,
		.track_event = *event,
	};

	packet.track_event.has_type = true;
	packet.track_event.has_track_uuid = true;
	packet.track_event.track_uuid = uuid_of_phase(edge->what, edge->phase);
	packet.track_event.categories = &category;
	packet.track_event.categories_count = event->name ? 1 : 0;
	put_on(w, &packet);
}

static pp_DebugAnnotation number(const char *name, uint64_t value)
{
	return (pp_DebugAnnotation){
		.name = (char *)name, .has_int_value = true, .int_value = (int64_t)value};
}

static void put_begin(const struct writer *w, const struct edge *edge)
{
	pp_DebugAnnotation facts[] = {
		number(kinds[edge->what].amount, touched_growth(&w->of[edge->what], edge->phase)),
		number("unsampled", touched_unsampled(&w->of[edge->what], edge->phase)),
	};

	put_event(w, edge,
		  &(pp_TrackEvent){
			  .type = pp_TrackEvent_Type_TYPE_SLICE_BEGIN,
			  .name = (char *)name_of(w, edge->phase),
			  .debug_annotations = facts,
			  .debug_annotations_count = sizeof(facts) / sizeof(*facts),
		  });
}

static void put_stack(const struct writer *w, const struct edge *edge, const char *name,
		      uint64_t stack, uint64_t amount, uint64_t samples)
{
	pp_DebugAnnotation facts[] = {
		number(kinds[edge->what].amount, amount),
		number("samples", samples),
	};

	if (amount)
		put_event(w, edge,
			  &(pp_TrackEvent){
				  .type = pp_TrackEvent_Type_TYPE_INSTANT,
				  .name = (char *)name,
				  .debug_annotations = facts,
				  .debug_annotations_count = sizeof(facts) / sizeof(*facts),
				  .has_callstack_iid = true,
				  .callstack_iid = stack,
				  .has_callstack_weight = true,
				  .callstack_weight = (double)amount,
			  });
}

static void put_special(const struct writer *w, const struct edge *edge, enum special special,
			uint64_t amount)
{
	put_stack(w, edge, specials[special], iid_of_special(&w->of[edge->what], special), amount,
		  0);
}

/* An instant has the name of the function that its stack is charged to. */
static void put_end(const struct writer *w, const struct edge *edge)
{
	const struct recording_stacks *s = &w->of[edge->what];
	char name[TOUCHED_NAME_MAX];
	size_t n;
	const struct recording_touched *rows = touched_rows(s, edge->phase, &n);

	for (size_t i = 0; i < n; i++) {
		const uint32_t call = rows[i].call;
		const char *who = call ? touched_name(name, &s->functions[touched_who(s, call)])
				       : specials[SPECIAL_UNKNOWN];

		put_stack(w, edge, who, tell_stack(w, call), rows[i].amount, rows[i].samples);
	}
	put_special(w, edge, SPECIAL_UNSAMPLED, touched_unsampled(s, edge->phase));
	put_special(w, edge, SPECIAL_OUTSIDE, touched_outside(s, edge->phase));
	put_event(w, edge, &(pp_TrackEvent){.type = pp_TrackEvent_Type_TYPE_SLICE_END});
}

/* What is added first comes first at the same time: a slice begins before it ends. */
static int in_time(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void add_slice(struct writer *w, enum touched_what what, uint32_t phase, uint64_t start,
		      uint64_t ns)
{
	w->edges[w->n_edges++] = (struct edge){start, phase, what, false};
	w->edges[w->n_edges++] = (struct edge){start + ns, phase, what, true};
}

static bool wants(const struct writer *w, enum touched_what what, uint32_t phase)
{
	const struct recording_phase *p = &w->t->recording->phases[phase];

	/* The rest outside of phases has no one place. */
	return p->kind != PROFILE_PHASE_OUTSIDE && render_wants_phase(w->options, p) &&
	       touched_is_sampled(&w->of[what], phase);
}

static void put_tracks(struct writer *w, enum touched_what what)
{
	const struct recording *r = w->t->recording;
	const struct recording_stacks *s = &w->of[what];

	if (!s->has)
		return;
	put_kind(w, what);
	put_phase(w, what, TOUCHED_WHOLE_RUN, 0);
	add_slice(w, what, TOUCHED_WHOLE_RUN, 0, r->totals.duration_ns);
	for (size_t i = 0; i < s->n_growth; i++) {
		const uint32_t phase = s->growth[i].phase;

		if (!wants(w, what, phase))
			continue;
		put_phase(w, what, phase, (int32_t)i + 1);
		add_slice(w, what, phase, r->phases[phase].start_ns, r->phases[phase].duration_ns);
	}
}

static void put_events(struct writer *w)
{
	array_sort(w->edges, w->n_edges, sizeof(*w->edges), in_time);
	for (size_t i = 0; i < w->n_edges; i++) {
		if (w->edges[i].is_end)
			put_end(w, &w->edges[i]);
		else
			put_begin(w, &w->edges[i]);
	}
}

static int put_all(struct writer *w)
{
	pp_TracePacket start = {.sequence_flags = PERFETTO_SEQUENCE_STARTS};

	put_on(w, &start);
	if (put_files(w))
		return -1;
	put_frames(w);
	put_specials(w);
	for (unsigned int what = 0; what < TOUCHED_WHATS; what++)
		put_tracks(w, what);
	put_events(w);
	return 0;
}

int perfetto_put_stacks(FILE *out, const struct trace *t, const struct render_options *options,
			struct error *err)
{
	const struct recording_stacks *s = &t->recording->stacks;
	struct writer w = {.out = out, .t = t, .options = options};
	size_t n_slices = 0;
	int failed;

	if (!s->has)
		return 0;
	for (unsigned int what = 0; what < TOUCHED_WHATS; what++) {
		w.of[what] = touched_of(t->recording, what);
		n_slices += w.of[what].n_growth + 1;
	}
	w.files = calloc(s->n_functions + 1, sizeof(*w.files));
	w.told = calloc(s->n_calls + 1, sizeof(*w.told));
	w.edges = calloc(2 * n_slices, sizeof(*w.edges));
	failed = !w.files || !w.told || !w.edges || put_all(&w);
	free(w.files);
	free(w.told);
	free(w.edges);
	return failed ? error_set(err, "not enough memory for the report") : 0;
}
