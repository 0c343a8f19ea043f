/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chrome's JSON trace format, for chrome://tracing and the many tools that read it. A pid and a
 * tid, or a pid and an id, name a track. Tracks of the whole tree have pid 0.
 */
#include <inttypes.h>

#include "base/json_writer.h"
#include "report/renderer.h"
#include "report/trace.h"

/* In microseconds. A profile has no fractions of them. */
static void put_time(struct json_writer *j, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".%03u", ns / 1000, (unsigned int)(ns % 1000));
	json_key(j, "ts");
	if (ns % 1000)
		json_plain(j, text);
	else
		json_u64(j, ns / 1000);
}

/* Writes what all events begin with and leaves the object open. */
static void begin_event(struct json_writer *j, const char *type, const char *name,
			const struct trace_track *track)
{
	json_compact(j);
	json_object(j);
	json_member_text(j, "ph", type);
	json_member_text(j, "name", name);
	json_member_u64(j, "pid", track->pid);
	if (track->kind == TRACE_THREAD)
		json_member_u64(j, "tid", track->tid);
}

/* ---- Tracks ---- */

static void put_track_name(struct json_writer *j, const char *what, const char *name,
			   const struct trace_track *track)
{
	if (!name)
		return;
	begin_event(j, "M", what, track);
	json_key(j, "args");
	json_object(j);
	json_member_text(j, "name", name);
	json_object_end(j);
	json_object_end(j);
}

/* Lanes and counter tracks need no name here: their events name them. */
static void put_track(struct json_writer *j, const struct trace_track *track)
{
	if (track->kind == TRACE_RUN)
		put_track_name(j, "process_name", track->name, track);
	else if (track->kind == TRACE_PROCESS && track->process)
		put_track_name(j, "process_name", track->process->comm, track);
	else if (track->kind == TRACE_THREAD)
		put_track_name(j, "thread_name", track->name, track);
}

/* ---- Numbers ---- */

static void put_value(struct json_writer *j, const char *name, const struct trace_value *value)
{
	json_key(j, name);
	if (value->kind == TRACE_REAL)
		json_double(j, value->real);
	else
		json_i64(j, value->integer);
}

static void begin_values(struct json_writer *j, const char *name, const struct trace_track *track,
			 uint64_t time_ns)
{
	begin_event(j, "C", name, track);
	put_time(j, time_ns);
	json_key(j, "args");
	json_object(j);
}

static void end_values(struct json_writer *j)
{
	json_object_end(j);
	json_object_end(j);
}

/*
 * Viewers stack the numbers of an event. So an event has the parts instead of their sum, and one
 * number more for what no part accounts for: the stack is as high as the sum.
 */
static void put_parts(struct json_writer *j, const struct trace_track *track, uint64_t time_ns,
		      const struct trace_value *values)
{
	const struct trace_counters *counters = &track->counters;
	struct trace_value rest = values[0];

	begin_values(j, counters->names[0], track, time_ns);
	for (unsigned int i = 1; i <= counters->n_parts; i++) {
		put_value(j, counters->names[i], &values[i]);
		rest.integer -= values[i].integer;
	}
	put_value(j, "not told apart", &rest);
	end_values(j);
}

static void put_values(struct json_writer *j, struct trace *t, const struct trace_event *event)
{
	static const char *const units[] = {
		[QUANTITY_COUNT] = "value", [QUANTITY_BYTES] = "bytes", [QUANTITY_NS] = "ns"};
	const struct trace_track *track = &t->tracks[event->track];
	const struct trace_counters *counters = &track->counters;
	struct trace_value values[TRACE_MAX_VALUES];
	bool parts_changed = false;
	unsigned int i = 0;

	trace_values(t, event, values);
	if (counters->n_parts) {
		for (; i <= counters->n_parts; i++)
			parts_changed |= values[i].changed;
	}
	if (parts_changed)
		put_parts(j, track, event->time_ns, values);
	for (; i < counters->n_names; i++) {
		if (!values[i].changed)
			continue;
		begin_values(j, counters->names[i], track, event->time_ns);
		put_value(j, units[counters->unit], &values[i]);
		end_values(j);
	}
}

/* ---- Slices and instants ---- */

static void put_args(struct json_writer *j, const struct trace *t, const struct trace_event *event)
{
	struct trace_arg args[TRACE_MAX_ARGS];
	const size_t n = trace_args(t, event, args);

	if (!n)
		return;
	json_key(j, "args");
	json_object(j);
	for (size_t i = 0; i < n; i++) {
		json_key(j, args[i].name);
		if (args[i].text)
			json_text(j, args[i].text);
		else
			json_i64(j, args[i].number);
	}
	json_object_end(j);
}

/*
 * Begin, end and instant are B, E and i on the track of a thread. On other tracks, and where
 * another thread had the same pid, they are b, e and n with the track's id. The peak is a global
 * instant.
 */
static void put_named(struct json_writer *j, const struct trace *t, const struct trace_event *event)
{
	static const char *const of_thread[] = {"B", "E", "i"}, *const of_other[] = {"b", "e", "n"};
	const struct trace_track *track = &t->tracks[event->track];
	const bool global = track->kind == TRACE_RUN && event->type == TRACE_INSTANT;
	const bool plain = (track->kind == TRACE_THREAD && !track->pid_reused) || global;

	begin_event(j, (plain ? of_thread : of_other)[event->type], trace_name(t, event), track);
	json_member_text(j, "cat", trace_category(t, event));
	put_time(j, event->time_ns);
	if (!plain)
		json_member_u64(j, "id", event->track);
	else if (event->type == TRACE_INSTANT)
		json_member_text(j, "s", global ? "g" : "t");
	put_args(j, t, event);
	json_object_end(j);
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	struct json_writer j = {.out = out, .pretty = true};
	struct trace t;
	const int failed = trace_build(&t, r, options, err);

	if (!failed) {
		json_object(&j);
		json_member_text(&j, "displayTimeUnit", "ms");
		json_key(&j, "traceEvents");
		json_array(&j);
		for (size_t i = 0; i < t.n_tracks; i++)
			put_track(&j, &t.tracks[i]);
		for (size_t i = 0; i < t.n_events; i++) {
			if (t.events[i].type == TRACE_VALUES)
				put_values(&j, &t, &t.events[i]);
			else
				put_named(&j, &t, &t.events[i]);
		}
		json_array_end(&j);
		json_object_end(&j);
	}
	trace_free(&t);
	return failed;
}

const struct renderer renderer_chrome = {
	.name = "chrome",
	.what = "a trace in Chrome's JSON format",
	.render = render,
};
