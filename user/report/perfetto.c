/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Perfetto's own trace format, for ui.perfetto.dev and trace_processor: Protocol Buffers packets
 * (perfetto.proto), written one by one.
 */
#include "report/perfetto.h"

#include <pb_encode.h>

#include "report/renderer.h"

enum {
	CLOCK_ID_REALTIME = 1,
	CLOCK_ID_BOOTTIME = 6, /* the clock of timestamps */
};

static bool write_bytes(pb_ostream_t *stream, const pb_byte_t *bytes, size_t n)
{
	return fwrite_unlocked(bytes, 1, n, stream->state) == n;
}

/*
 * The caller of render finds failed writes at the file's end. A packet's size comes before it: a
 * small packet is encoded once, into bytes; a large one twice, to measure it first.
 */
void perfetto_put(FILE *out, pp_TracePacket *packet)
{
	pb_ostream_t stream = {.callback = write_bytes, .state = out, .max_size = SIZE_MAX};
	pb_byte_t bytes[512];
	pb_ostream_t small = pb_ostream_from_buffer(bytes, sizeof(bytes));

	packet->has_trusted_packet_sequence_id = true;
	if (!packet->trusted_packet_sequence_id)
		packet->trusted_packet_sequence_id = PERFETTO_EVENTS;
	if (!pb_encode_tag(&stream, PB_WT_STRING, pp_Trace_packet_tag))
		return;
	if (pb_encode(&small, pp_TracePacket_fields, packet))
		pb_encode_string(&stream, bytes, small.bytes_written);
	else
		pb_encode_submessage(&stream, pp_TracePacket_fields, packet);
}

/* ---- Tracks ---- */

uint64_t perfetto_uuid_of_track(uint32_t track)
{
	return track + 1ull;
}

static uint64_t uuid_of_value(const struct trace_track *track, unsigned int i)
{
	return 1ull << 32 | (track->first_value + i);
}

static void put_descriptor(FILE *out, const pp_TrackDescriptor *descriptor)
{
	pp_TracePacket packet = {.has_track_descriptor = true, .track_descriptor = *descriptor};

	perfetto_put(out, &packet);
}

static pp_ProcessDescriptor process_descriptor(const struct trace_track *track, char **cmdline)
{
	const struct recording_process *process = track->process;
	pp_ProcessDescriptor descriptor = {.has_pid = true, .pid = (int32_t)track->pid};

	if (!process)
		return descriptor;
	descriptor.process_name = process->comm;
	descriptor.has_start_timestamp_ns = true;
	descriptor.start_timestamp_ns = (int64_t)process->start_ns;
	*cmdline = process->cmdline;
	descriptor.cmdline = cmdline;
	descriptor.cmdline_count = *cmdline ? 1 : 0;
	return descriptor;
}

static void put_counters(FILE *out, const struct trace_track *track)
{
	static const pp_CounterDescriptor_Unit units[] = {
		[QUANTITY_COUNT] = pp_CounterDescriptor_Unit_UNIT_UNSPECIFIED,
		[QUANTITY_BYTES] = pp_CounterDescriptor_Unit_UNIT_SIZE_BYTES,
		[QUANTITY_NS] = pp_CounterDescriptor_Unit_UNIT_TIME_NS,
	};
	const struct trace_counters *counters = &track->counters;

	for (unsigned int i = 0; i < counters->n_names; i++) {
		put_descriptor(out, &(pp_TrackDescriptor){
					    .has_uuid = true,
					    .uuid = uuid_of_value(track, i),
					    .has_parent_uuid = true,
					    .parent_uuid = perfetto_uuid_of_track(track->parent),
					    .name = (char *)counters->names[i],
					    .has_sibling_order_rank = true,
					    .sibling_order_rank = (int32_t)(track->first_value + i),
					    .has_counter = true,
					    .counter.has_unit = true,
					    .counter.unit = units[counters->unit],
				    });
	}
}

static void put_track(FILE *out, const struct trace_track *track, uint32_t index)
{
	char *cmdline = NULL;
	pp_TrackDescriptor descriptor = {
		.has_uuid = true,
		.uuid = perfetto_uuid_of_track(index),
		.name = (char *)track->name,
	};

	switch (track->kind) {
	case TRACE_RUN:
		descriptor.has_child_ordering = true;
		descriptor.child_ordering = pp_TrackDescriptor_ChildTracksOrdering_EXPLICIT;
		break;
	case TRACE_PROCESS:
		descriptor.has_process = true;
		descriptor.process = process_descriptor(track, &cmdline);
		break;
	case TRACE_THREAD:
		descriptor.has_thread = true;
		descriptor.thread = (pp_ThreadDescriptor){
			.has_pid = true,
			.pid = (int32_t)track->pid,
			.has_tid = true,
			.tid = track->tid,
			.thread_name = (char *)track->name,
		};
		descriptor.has_parent_uuid = true;
		descriptor.parent_uuid = perfetto_uuid_of_track(track->parent);
		break;
	case TRACE_LANE:
		descriptor.has_parent_uuid = true;
		descriptor.parent_uuid = perfetto_uuid_of_track(track->parent);
		break;
	case TRACE_COUNTERS:
		put_counters(out, track);
		return;
	}
	put_descriptor(out, &descriptor);
}

/* ---- Events ---- */

static void put_event(FILE *out, uint64_t time_ns, const pp_TrackEvent *event)
{
	pp_TracePacket packet = {
		.has_timestamp = true,
		.timestamp = time_ns,
		.has_track_event = true,
		.track_event = *event,
	};

	packet.track_event.has_type = true;
	packet.track_event.has_track_uuid = true;
	perfetto_put(out, &packet);
}

static void put_values(FILE *out, struct trace *t, const struct trace_event *event)
{
	const struct trace_track *track = &t->tracks[event->track];
	struct trace_value values[TRACE_MAX_VALUES];

	trace_values(t, event, values);
	for (unsigned int i = 0; i < track->counters.n_names; i++) {
		pp_TrackEvent value = {
			.type = pp_TrackEvent_Type_TYPE_COUNTER,
			.track_uuid = uuid_of_value(track, i),
			.has_counter_value = values[i].kind == TRACE_INTEGER,
			.counter_value = values[i].integer,
			.has_double_counter_value = values[i].kind == TRACE_REAL,
			.double_counter_value = values[i].real,
		};

		if (values[i].changed)
			put_event(out, event->time_ns, &value);
	}
}

static void put_named(FILE *out, const struct trace *t, const struct trace_event *event,
		      pp_TrackEvent_Type type)
{
	struct trace_arg args[TRACE_MAX_ARGS];
	pp_DebugAnnotation annotations[TRACE_MAX_ARGS];
	const size_t n = trace_args(t, event, args);
	char *category = (char *)trace_category(t, event);

	for (size_t i = 0; i < n; i++)
		annotations[i] = (pp_DebugAnnotation){
			.name = (char *)args[i].name,
			.string_value = (char *)args[i].text,
			.has_int_value = !args[i].text,
			.int_value = args[i].number,
		};
	put_event(out, event->time_ns,
		  &(pp_TrackEvent){
			  .type = type,
			  .track_uuid = perfetto_uuid_of_track(event->track),
			  .name = (char *)trace_name(t, event),
			  .categories = &category,
			  .categories_count = 1,
			  .debug_annotations = annotations,
			  .debug_annotations_count = (pb_size_t)n,
		  });
}

static void put_any(FILE *out, struct trace *t, const struct trace_event *event)
{
	switch ((enum trace_event_type)event->type) {
	case TRACE_BEGIN:
		put_named(out, t, event, pp_TrackEvent_Type_TYPE_SLICE_BEGIN);
		break;
	case TRACE_INSTANT:
		put_named(out, t, event, pp_TrackEvent_Type_TYPE_INSTANT);
		break;
	case TRACE_END:
		put_event(out, event->time_ns,
			  &(pp_TrackEvent){.type = pp_TrackEvent_Type_TYPE_SLICE_END,
					   .track_uuid = perfetto_uuid_of_track(event->track)});
		break;
	case TRACE_VALUES:
		put_values(out, t, event);
		break;
	}
}

/* The first packet. It says what time of day the run began, for viewers to show. */
static void put_start(FILE *out, const struct recording *r)
{
	const struct recording_step *first = r->n_steps ? &r->steps[0] : NULL;
	const double start = first ? first->unix_secs - (double)first->rel_ns / 1e9 : 0;
	pp_TracePacket packet = {.has_sequence_flags = true,
				 .sequence_flags = PERFETTO_SEQUENCE_STARTS};

	if (start > 0 && start < (double)(INT64_MAX / 1000000000)) {
		packet.has_clock_snapshot = true;
		packet.clock_snapshot = (pp_ClockSnapshot){
			.clocks_count = 2,
			.clocks = {{true, CLOCK_ID_BOOTTIME, true, 0},
				   {true, CLOCK_ID_REALTIME, true, (uint64_t)(start * 1e6) * 1000}},
		};
	}
	perfetto_put(out, &packet);
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	struct trace t;
	int failed = trace_build(&t, r, options, err);

	if (!failed) {
		put_start(out, r);
		for (uint32_t i = 0; i < t.n_tracks; i++)
			put_track(out, &t.tracks[i], i);
		for (size_t i = 0; i < t.n_events; i++)
			put_any(out, &t, &t.events[i]);
		failed = perfetto_put_stacks(out, &t, options, err);
	}
	trace_free(&t);
	return failed;
}

const struct renderer renderer_perfetto = {
	.name = "perfetto",
	.extension = ".pftrace",
	.what = "a trace for ui.perfetto.dev",
	.binary = true,
	.render = render,
};
