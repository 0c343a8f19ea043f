/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define FIELD(type, k, member, kind_)                                                              \
	.key = (k), .kind = (kind_), .offset = offsetof(struct recording_##type, member)
#define LIST(base, k, member, kind_, max_)                                                         \
	.key = (k), .kind = (kind_), .offset = offsetof(base, member),                             \
	.count = offsetof(base, n_##member), .max = (max_)
#define RECORD(type, name_, list)                                                                  \
	{                                                                                          \
		.name = (name_), .fields = (list), .n_fields = sizeof(list) / sizeof(*(list)),     \
		.size = sizeof(struct recording_##type),                                           \
		.has = offsetof(struct recording_##type, has),                                     \
	}

const struct flag_name kind_names[N_KIND_NAMES] = {
	{PROFILE_PHASE_PAIR, "pair"},
	{PROFILE_PHASE_GAP, "gap"},
};

const struct flag_name flag_names[N_FLAG_NAMES] = {
	{WIRE_PROCESS_TARGET, "target"},
	{WIRE_PROCESS_ATTACHED, "attached"},
	{WIRE_PROCESS_SHARES_MM, "shares_memory"},
	{WIRE_PROCESS_EXIT_LOST, "exit_lost"},
};

static const struct field backends_fields[] = {
	{FIELD(backends, "rss", rss, FIELD_TEXT)},
	{FIELD(backends, "io_calls", io_calls, FIELD_TEXT)},
	{FIELD(backends, "io_storage", io_storage, FIELD_TEXT)},
	{FIELD(backends, "checkpoints", checkpoints, FIELD_TEXT)},
};
static const struct record record_backends = RECORD(backends, "backends", backends_fields);

static const struct field run_fields[] = {
	{FIELD(run, "version", version, FIELD_TEXT)},
	{FIELD(run, "schema_version", schema_version, FIELD_COUNT)},
	{FIELD(run, "hostname", hostname, FIELD_TEXT)},
	{FIELD(run, "kernel", kernel, FIELD_TEXT)},
	{LIST(struct recording_run, "command", command, FIELD_TEXTS, RECORDING_MAX_SMALL)},
	{LIST(struct recording_run, "pids", pids, FIELD_U32S, RECORDING_MAX_SMALL)},
	{FIELD(run, "started_at", started_at, FIELD_UNIX_SECS)},
	{FIELD(run, "backends", backends, FIELD_MAP), .of = &record_backends},
};
static const struct record record_run = RECORD(run, "qprof", run_fields);

/* What storage, calls and CPUs did, in the names that rows, phases and processes have for it. */
#define USAGE_FIELDS(type, prefix)                                                                 \
	{FIELD(type, prefix "io_read_mb", usage.io_read, FIELD_BYTES)},                            \
		{FIELD(type, prefix "io_write_mb", usage.io_write, FIELD_BYTES)},                  \
		{FIELD(type, prefix "disk_read_mb", usage.disk_read, FIELD_BYTES)},                \
		{FIELD(type, prefix "disk_write_mb", usage.disk_write, FIELD_BYTES)},              \
	{                                                                                          \
		FIELD(type, prefix "cpu_time_secs", usage.cpu_ns, FIELD_NS)                        \
	}

static const struct field step_fields[] = {
	{FIELD(step, "step", step, FIELD_TEXT), .required = true},
	{FIELD(step, "timestamp", unix_secs, FIELD_UNIX_SECS)},
	{FIELD(step, "relative_time_secs", rel_ns, FIELD_NS), .required = true},
	{FIELD(step, "cpu_memory_mb", rss, FIELD_BYTES), .required = true},
	{FIELD(step, "gpu_memory_mb", gpu, FIELD_BYTES)},
	{FIELD(step, "step_peak_memory_mb", peak, FIELD_BYTES)},
	USAGE_FIELDS(step, ""),
	{FIELD(step, "pid", pid, FIELD_U32)},
	{FIELD(step, "tid", tid, FIELD_U32)},
	{LIST(struct recording_step, "metrics", metrics, FIELD_METRICS, RECORDING_MAX_SMALL)},
	{FIELD(step, "hugetlb_mb", hugetlb, FIELD_BYTES)},
};
const struct record record_step = RECORD(step, "a row of memory_usage", step_fields);

static const struct field phase_fields[] = {
	{FIELD(phase, "name", name, FIELD_TEXT), .required = true},
	{FIELD(phase, "kind", kind, FIELD_KIND), .required = true},
	{FIELD(phase, "to", to, FIELD_TEXT)},
	{FIELD(phase, "depth", depth, FIELD_U32)},
	{FIELD(phase, "pid", pid, FIELD_U32)},
	{FIELD(phase, "tid", tid, FIELD_U32)},
	{FIELD(phase, "start_secs", start_ns, FIELD_NS), .required = true},
	{FIELD(phase, "duration_secs", duration_ns, FIELD_NS), .required = true},
	{FIELD(phase, "start_memory_mb", start_rss, FIELD_BYTES), .required = true},
	{FIELD(phase, "end_memory_mb", end_rss, FIELD_BYTES), .required = true},
	{FIELD(phase, "peak_memory_mb", peak_rss, FIELD_BYTES), .required = true},
	{FIELD(phase, "delta_memory_mb", delta_rss, FIELD_DELTA)},
	USAGE_FIELDS(phase, ""),
	{FIELD(phase, "closed", closed, FIELD_BOOL), .absent = true},
};
const struct record record_phase = RECORD(phase, "a phase", phase_fields);

static const struct field process_fields[] = {
	{FIELD(process, "pid", pid, FIELD_U32), .required = true},
	{FIELD(process, "ppid", ppid, FIELD_U32)},
	{FIELD(process, "comm", comm, FIELD_TEXT), .required = true},
	{FIELD(process, "cmdline", cmdline, FIELD_TEXT), .nullable = true},
	{FIELD(process, "cmdline_cut", cmdline_cut, FIELD_BOOL)},
	{FIELD(process, "start_secs", start_ns, FIELD_NS), .required = true},
	{FIELD(process, "end_secs", end_ns, FIELD_NS), .nullable = true},
	{FIELD(process, "exit_code", exit_code, FIELD_U32)},
	{FIELD(process, "exit_signal", exit_signal, FIELD_U32)},
	{FIELD(process, "flags", flags, FIELD_FLAGS)},
	{FIELD(process, "peak_memory_mb", peak_rss, FIELD_BYTES), .required = true},
	{FIELD(process, "file_memory_mb", file, FIELD_BYTES)},
	{FIELD(process, "anon_memory_mb", anon, FIELD_BYTES)},
	{FIELD(process, "shmem_memory_mb", shmem, FIELD_BYTES)},
	{FIELD(process, "swap_mb", swap, FIELD_BYTES)},
	USAGE_FIELDS(process, ""),
	{FIELD(process, "hugetlb_mb", hugetlb, FIELD_BYTES)},
	{FIELD(process, "peak_hugetlb_mb", peak_hugetlb, FIELD_BYTES)},
};
const struct record record_process = RECORD(process, "a process", process_fields);

#define MEMORY_FIELDS(type)                                                                        \
	{FIELD(type, "file_mb", file, FIELD_BYTES), .required = true},                             \
		{FIELD(type, "anon_mb", anon, FIELD_BYTES), .required = true},                     \
		{FIELD(type, "shmem_mb", shmem, FIELD_BYTES), .required = true},                   \
	{                                                                                          \
		FIELD(type, "swap_mb", swap, FIELD_BYTES), .required = true                        \
	}

static const struct field point_fields[] = {
	{FIELD(point, "time_secs", time_ns, FIELD_NS), .required = true},
	MEMORY_FIELDS(point),
	{FIELD(point, "step_peak_mb", peak, FIELD_BYTES), .nullable = true},
};
const struct record record_point = RECORD(point, "a row of timeline", point_fields);

static const struct field track_point_fields[] = {
	{FIELD(track_point, "process", process, FIELD_U32), .required = true},
	{FIELD(track_point, "time_secs", time_ns, FIELD_NS), .required = true},
	MEMORY_FIELDS(track_point),
};
const struct record record_track_point =
	RECORD(track_point, "a row of process_timeline", track_point_fields);

static const struct field share_fields[] = {
	{FIELD(share, "process", process, FIELD_U32), .required = true},
	{FIELD(share, "pid", pid, FIELD_U32)},
	MEMORY_FIELDS(share),
};
static const struct record record_share = RECORD(share, "a process at the peak", share_fields);

static const struct field peak_fields[] = {
	{FIELD(peak, "time_secs", time_ns, FIELD_NS), .required = true},
	MEMORY_FIELDS(peak),
	{LIST(struct recording_peak, "processes", shares, FIELD_LIST, RECORDING_MAX_PROCESSES),
	 .of = &record_share},
};
static const struct record record_peak = RECORD(peak, "peak", peak_fields);

static const struct field totals_fields[] = {
	{FIELD(totals, "total_quantization_time_seconds", duration_ns, FIELD_NS)},
	{FIELD(totals, "peak_memory_mb", peak_rss, FIELD_BYTES)},
	{FIELD(totals, "main_peak_memory_mb", main_peak_rss, FIELD_BYTES)},
	{FIELD(totals, "peak_hugetlb_mb", peak_hugetlb, FIELD_BYTES)},
	{FIELD(totals, "gpu_peak_memory_mb", gpu_peak, FIELD_BYTES)},
	{FIELD(totals, "total_disk_write_cancelled_mb", usage.disk_write_cancelled, FIELD_BYTES)},
	USAGE_FIELDS(totals, "total_"),
};
const struct record record_totals = RECORD(totals, "the totals", totals_fields);

static const struct field warning_fields[] = {
	{FIELD(warning, "what", what, FIELD_TEXT), .required = true},
	{FIELD(warning, "why", why, FIELD_TEXT), .required = true},
};
static const struct record record_warning = RECORD(warning, "a warning", warning_fields);

static const struct field shared_fields[] = {
	{FIELD(shared, "inherited_at_fork", inherited, FIELD_BYTES)},
	{FIELD(shared, "shmem", shmem, FIELD_BYTES)},
	{FIELD(shared, "shared_files", files, FIELD_BYTES)},
	{FIELD(shared, "note", note, FIELD_TEXT)},
};
static const struct record record_shared =
	RECORD(shared, "may_be_counted_more_than_once_mb", shared_fields);

static const struct field quality_fields[] = {
	{LIST(struct recording_quality, NULL, counts, FIELD_COUNTS, RECORDING_MAX_SMALL)},
	{LIST(struct recording_quality, "warnings", warnings, FIELD_LIST, RECORDING_MAX_SMALL),
	 .of = &record_warning},
	{LIST(struct recording_quality, "notes", notes, FIELD_TEXTS, RECORDING_MAX_SMALL)},
	{FIELD(quality, "may_be_counted_more_than_once_mb", shared, FIELD_MAP),
	 .of = &record_shared},
};
static const struct record record_quality = RECORD(quality, "quality", quality_fields);

#define TOP(k, member, record_)                                                                    \
	{                                                                                          \
		.key = (k), .kind = FIELD_MAP, .offset = offsetof(struct recording, member),       \
		.of = &(record_)                                                                   \
	}
#define TOP_LIST(k, member, kind_, record_, max_)                                                  \
	{                                                                                          \
		LIST(struct recording, k, member, kind_, max_), .of = &(record_)                   \
	}

static const struct field recording_fields[] = {
	TOP("qprof", run, record_run),
	TOP_LIST("memory_usage", steps, FIELD_LIST, record_step, RECORDING_MAX_STEPS),
	TOP(NULL, totals, record_totals),
	TOP("peak", peak, record_peak),
	TOP_LIST("phases", phases, FIELD_LIST, record_phase, RECORDING_MAX_PHASES),
	TOP_LIST("processes", processes, FIELD_LIST, record_process, RECORDING_MAX_PROCESSES),
	TOP_LIST("timeline", points, FIELD_TABLE, record_point, RECORDING_MAX_POINTS),
	TOP_LIST("process_timeline", tracks, FIELD_TABLE, record_track_point, RECORDING_MAX_POINTS),
	TOP("quality", quality, record_quality),
};
const struct record record_recording = {
	.name = "a profile",
	.fields = recording_fields,
	.n_fields = sizeof(recording_fields) / sizeof(*recording_fields),
	.size = sizeof(struct recording),
	.has = offsetof(struct recording, has),
};

size_t field_find(const struct record *record, const char *key, size_t len)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		const char *own = record->fields[i].key;

		if (own && strlen(own) == len && !memcmp(own, key, len))
			return i;
	}
	return record->n_fields;
}

static const char *kind_name(uint32_t kind)
{
	for (size_t i = 0; i < N_KIND_NAMES; i++) {
		if (kind_names[i].value == kind)
			return kind_names[i].name;
	}
	return "";
}

char *field_scalar(char *out, const struct record *record, size_t i, const void *item)
{
	const struct field *field = &record->fields[i];
	const void *value = field_at(field, item);

	switch (field->kind) {
	case FIELD_COUNT:
		return units_count(out, *(const uint64_t *)value);
	case FIELD_U32:
		return units_count(out, *(const uint32_t *)value);
	case FIELD_BYTES:
		return units_mb(out, *(const uint64_t *)value);
	case FIELD_DELTA: {
		const int64_t delta = *(const int64_t *)value;

		return delta < 0 ? units_mb_delta(out, (uint64_t)-delta, 0)
				 : units_mb(out, (uint64_t)delta);
	}
	case FIELD_NS:
		return units_secs(out, *(const uint64_t *)value, 6);
	case FIELD_UNIX_SECS:
		snprintf(out, FIELD_TEXT_MAX, "%.6f", *(const double *)value);
		return out;
	case FIELD_BOOL:
		snprintf(out, FIELD_TEXT_MAX, "%s", *(const bool *)value ? "true" : "false");
		return out;
	case FIELD_KIND:
		snprintf(out, FIELD_TEXT_MAX, "%s", kind_name(*(const uint32_t *)value));
		return out;
	default:
		out[0] = '\0';
		return out;
	}
}
