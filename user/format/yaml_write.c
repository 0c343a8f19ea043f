/* SPDX-License-Identifier: GPL-2.0-only */
/* The profile as Quark's readers know it, and more. docs/profile-format.md says what each key
 * means. */
#include "format/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "base/units.h"
#include "format/quality.h"
#include "format/recorded.h"
#include "format/yaml_parts.h"
#include "format/yaml_record.h"
#include "format/yaml_stacks.h"
#include "format/yaml_window.h"

static const char *const header[] = {
	("A profile by qprof-bpf " QPROF_VERSION
	 ": memory and I/O of a process and its descendants."),
	"What the keys mean is at the end of this file.",
};

static const char *const units[] = {
	"",
	"What the keys mean",
	"",
	"_mb is bytes / 1048576, _secs is seconds. Numbers of the tree are sums over the",
	"process and its descendants.",
};

/* qprof: */

static void put_run(struct emit *e, const struct run_info *info)
{
	const struct recording_run run = recorded_run(info);

	emit_plain(e, "qprof");
	yaml_item(e, &record_run, &run);
}

int yaml_begin(struct yaml *y, const struct run_info *info)
{
	struct emit *e = y->e;

	yaml_comments(e, header, sizeof(header) / sizeof(*header));
	emit_map(e, EMIT_BLOCK);
	put_run(e, info);
	y->info = info;
	return emit_flush(e);
}

/* memory_usage: */

/* The key comes with the first row: alone it would be null. */
static void begin_rows(struct yaml *y)
{
	if (y->has_rows)
		return;
	emit_plain(y->e, "memory_usage");
	emit_list(y->e, EMIT_BLOCK);
	y->has_rows = true;
}

int yaml_row_begin(struct yaml *y, const struct profile_checkpoint *row)
{
	begin_rows(y);
	emit_map(y->e, EMIT_BLOCK);
	yaml_step_members(y->e, row);
	emit_boundary(y->e);
	y->has_open_row = true;
	return emit_error(y->e);
}

int yaml_row_end(struct yaml *y, uint64_t device_used)
{
	if (!y->has_open_row)
		return emit_error(y->e);
	if (device_used)
		key_mb(y->e, "gpu_device_used_mb", device_used);
	emit_map_end(y->e);
	emit_boundary(y->e);
	y->has_open_row = false;
	return emit_error(y->e);
}

int yaml_row(struct yaml *y, const struct profile_checkpoint *row)
{
	begin_rows(y);
	yaml_step(y->e, row);
	return emit_error(y->e);
}

static void put_summary_key(struct emit *e, const char *name)
{
	char text[WIRE_NAME_MAX * TEXT_GROWTH + sizeof(FIELD_AGAIN)];

	if (field_is_taken(name)) {
		snprintf(text, sizeof(text), "%s" FIELD_AGAIN, name);
		name = text;
	}
	emit_text(e, name);
}

static void put_summaries(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_metric *summaries = profile_summaries(p, &n);

	for (size_t i = 0; i < n; i++) {
		put_summary_key(e, summaries[i].name);
		yaml_metric_value(e, &summaries[i]);
		emit_boundary(e);
	}
}

/* peak: to process_timeline: */

static void put_peak(struct emit *e, const struct profile *p)
{
	struct recording_share shares[PROFILE_MAX_SHARES];
	const struct recording_peak peak = recorded_peak(p, shares);

	if (!peak.has)
		return;
	emit_plain(e, "peak");
	yaml_item(e, &record_peak, &peak);
}

static void put_closest(struct emit *e, const struct profile *p, const struct run_info *info)
{
	const struct recording_closest closest = recorded_closest(p, info);

	if (!closest.has)
		return;
	emit_plain(e, "closest_to_limit");
	yaml_item(e, &record_closest, &closest);
}

static void put_cpu_limit(struct emit *e, const struct run_info *info)
{
	const struct recording_cpu_limit limit = recorded_cpu_limit(info);

	if (!limit.has)
		return;
	emit_plain(e, "cpu_limit");
	yaml_item(e, &record_cpu_limit, &limit);
}

/* n items of one size, one behind the other; without any, nothing. */
static void put_items(struct emit *e, const char *key, const struct record *of, const void *items,
		      size_t size, size_t n)
{
	if (!n)
		return;
	emit_plain(e, key);
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++)
		yaml_item(e, of, (const char *)items + i * size);
	emit_list_end(e);
	emit_boundary(e);
}

/* What there is no memory for is left out. */
static void put_gpus(struct emit *e, const struct profile *p, const struct run_gpus *gpus)
{
	struct arena *arena = arena_new();
	struct recording_gpu_refusal *refusals;
	struct recording_gpu *list;
	size_t n;

	if (arena && !recorded_gpus(p, gpus, arena, &list, &n))
		put_items(e, "gpus", &record_gpu, list, sizeof(*list), n);
	if (arena && !recorded_gpu_refusals(p, arena, &refusals, &n))
		put_items(e, "gpu_refusals", &record_gpu_refusal, refusals, sizeof(*refusals), n);
	arena_free(arena);
}

static void put_files(struct emit *e, const struct profile *p)
{
	struct recording_file_use uses[PROFILE_MAX_FILE_USES];
	struct recording_file_point points[PROFILE_MAX_FILE_POINTS];
	size_t n;
	const struct profile_file *files = profile_files(p, &n);

	if (!files)
		return;
	emit_plain(e, "files");
	emit_list(e, n ? EMIT_BLOCK : EMIT_FLOW);
	for (size_t i = 0; i < n; i++) {
		const struct recording_file file = recorded_file(p, &files[i], uses, points);

		yaml_item(e, &record_file, &file);
	}
	emit_list_end(e);
	emit_boundary(e);
}

static void put_spaces(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_space *spaces = profile_spaces(p, &n);

	if (!n)
		return;
	emit_plain(e, "file_systems");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		const struct recording_space space = recorded_space(p, &spaces[i]);

		yaml_item(e, &record_space, &space);
	}
	emit_list_end(e);
	emit_boundary(e);
}

static void put_devices(struct emit *e, const struct profile *p)
{
	struct recording_device_use uses[PROFILE_MAX_DEVICE_USES];
	size_t n;
	const struct profile_device *devices = profile_devices(p, &n);

	if (!n)
		return;
	emit_plain(e, "storage_devices");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		const struct recording_device device = recorded_device(&devices[i], uses);

		yaml_item(e, &record_device, &device);
	}
	emit_list_end(e);
	emit_boundary(e);
}

/* Readers find them by themselves if there was no memory for them. */
static void put_trends(struct emit *e, const struct profile *p, const struct run_info *info)
{
	struct arena *arena = arena_new();
	struct recording_trend *trends;
	size_t n;

	if (arena && !recorded_trends(p, info, arena, &trends, &n)) {
		emit_plain(e, "trends");
		emit_list(e, n ? EMIT_BLOCK : EMIT_FLOW);
		for (size_t i = 0; i < n; i++)
			yaml_item(e, &record_trend, &trends[i]);
		emit_list_end(e);
		emit_boundary(e);
	}
	arena_free(arena);
}

/* What there is no memory for is left out. */
static void put_deaths(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_death *deaths = profile_deaths(p, &n);
	struct arena *arena = n ? arena_new() : NULL;

	if (!arena)
		return;
	emit_plain(e, "ended");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		struct recording_death death;

		if (!recorded_death(p, &deaths[i], arena, &death))
			yaml_item(e, &record_death, &death);
	}
	emit_list_end(e);
	emit_boundary(e);
	arena_free(arena);
}

static void put_processes(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_process *const *processes = profile_processes(p, &n);

	emit_plain(e, "processes");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		const struct recording_process process =
			recorded_process(processes[i], profile_start_ns(p));

		yaml_item(e, &record_process, &process);
	}
	emit_list_end(e);
	emit_boundary(e);
}

static void put_timeline(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_point *points = profile_points(p, &n);

	yaml_table_begin(e, "timeline", &record_point);
	for (size_t i = 0; i < n; i++) {
		const struct recording_point point = recorded_point(p, &points[i]);

		yaml_table_row(e, &record_point, &point);
	}
	yaml_table_end(e);
}

/* Of a single process it would be the tree's once more. */
static void put_process_timeline(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_process_point *points = profile_process_points(p, &n);

	if (profile_totals(p)->processes < 2)
		n = 0;
	yaml_table_begin(e, "process_timeline", &record_track_point);
	for (size_t i = 0; i < n; i++) {
		const struct recording_track_point point = recorded_track_point(p, &points[i]);

		yaml_table_row(e, &record_track_point, &point);
	}
	yaml_table_end(e);
}

static void put_usage_timeline(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_usage_point *points = profile_usage_points(p, &n);

	yaml_table_begin(e, "usage_timeline", &record_usage_point);
	for (size_t i = 0; i < n; i++) {
		const struct recording_usage_point point = recorded_usage_point(p, &points[i]);

		yaml_table_row(e, &record_usage_point, &point);
	}
	yaml_table_end(e);
}

/* A profile without a GPU is as it was before there was this key. */
static void put_gpu_timeline(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_gpu_point *points = profile_gpu_points(p, &n);

	if (!n)
		return;
	yaml_table_begin(e, "gpu_timeline", &record_gpu_point);
	for (size_t i = 0; i < n; i++) {
		const struct recording_gpu_point point = recorded_gpu_point(p, &points[i]);

		yaml_table_row(e, &record_gpu_point, &point);
	}
	yaml_table_end(e);
}

/* quality: */

static void put_shared(struct emit *e, const struct profile_totals *totals)
{
	const struct recording_shared shared = recorded_shared(totals);

	emit_plain(e, "may_be_counted_more_than_once_mb");
	emit_map(e, EMIT_BLOCK);
	yaml_record(e, &record_shared, &shared);
	emit_map_end(e);
}

/* Where it was counted: --cost, or kernel.bpf_stats_enabled. */
static void put_cost(struct emit *e, const struct profile *p, const struct run_quality *quality)
{
	const double part = quality_bpf_share(p, quality);
	char share[UNITS_TEXT_MAX];

	if (!quality->cost.counted)
		return;
	snprintf(share, sizeof(share), "%.6f", part);
	emit_plain(e, "cost");
	emit_map(e, EMIT_BLOCK);
	key_secs(e, "bpf_run_time_secs", quality->cost.bpf_run_ns);
	key_count(e, "bpf_runs", quality->cost.bpf_runs);
	key_secs(e, "bpf_wait_secs", quality->cost.bpf_wait_ns);
	if (quality->cost.bpf_switches) {
		key_secs(e, "bpf_switch_time_secs", quality->cost.bpf_switch_ns);
		key_count(e, "bpf_switches", quality->cost.bpf_switches);
	}
	key_word(e, "bpf_share", isnan(part) ? "null" : share);
	key_secs(e, "own_cpu_time_secs", quality->cost.own_cpu_ns);
	emit_map_end(e);
	emit_boundary(e);
}

static void put_quality(struct emit *e, const struct profile *p, const struct run_quality *quality)
{
	struct quality_count counts[QUALITY_MAX_COUNTS];
	const size_t n = quality_of_run(quality, profile_losses(p), counts);

	emit_plain(e, "quality");
	emit_map(e, EMIT_BLOCK);
	yaml_quality(e, counts, n, quality);
	emit_boundary(e);
	put_cost(e, p, quality);
	put_shared(e, profile_totals(p));
	emit_map_end(e);
	emit_boundary(e);
}

/* ---- The comments at the end: what the keys mean ---- */

/* "key: means", in lines that a terminal shows. */
static void put_meaning(struct emit *e, const char *indent, const char *key, const char *means)
{
	enum { COLUMNS = 88 };
	char line[COLUMNS + 1];
	int len = snprintf(line, sizeof(line), "%s%s:", indent, key);

	while (*means) {
		const int word = (int)strcspn(means, " ");

		if (len + 1 + word > COLUMNS) {
			emit_comment(e, line);
			len = snprintf(line, sizeof(line), "%s ", indent);
		}
		len += snprintf(line + len, sizeof(line) - (size_t)len, " %.*s", word, means);
		means += word;
		means += strspn(means, " ");
	}
	emit_comment(e, line);
	emit_boundary(e);
}

static void put_meanings(struct emit *e, const char *indent, const struct record *record)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct field *field = &record->fields[i];

		if (field->means)
			put_meaning(e, indent, field->key, field->means);
		if (field->of && record == &record_recording)
			put_meanings(e, field->key ? "  " : "", field->of);
	}
}

static void put_definitions(struct emit *e, const struct profile *p)
{
	size_t n;
	const char *const *texts = profile_definitions(p, &n);

	if (!n)
		return;
	emit_plain(e, "metric_definitions");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		emit_text(e, texts[i]);
		emit_boundary(e);
	}
	emit_list_end(e);
	emit_boundary(e);
}

/* The same for people, where Quark has it; a comment must hold no line break of theirs. */
static void put_definition_comments(struct emit *e, const struct profile *p)
{
	char line[WIRE_NAME_MAX * TEXT_TERMINAL_GROWTH + 1];
	size_t n;
	const char *const *texts = profile_definitions(p, &n);

	if (n)
		emit_comment(e, "What the program says of its own metrics:");
	for (size_t i = 0; i < n; i++) {
		text_for_terminal(line, sizeof(line), texts[i], WIRE_NAME_MAX);
		emit_comment(e, line);
		emit_boundary(e);
	}
}

int yaml_finish(struct yaml *y, const struct profile *p, const struct run_quality *quality)
{
	struct emit *e = y->e;

	yaml_row_end(y, 0);
	begin_rows(y);
	emit_list_end(e);
	yaml_totals(e, profile_totals(p), y->info->gpus);
	put_summaries(e, p);
	put_definitions(e, p);
	put_closest(e, p, y->info);
	put_cpu_limit(e, y->info);
	put_peak(e, p);
	put_gpus(e, p, y->info->gpus);
	put_files(e, p);
	put_spaces(e, p);
	put_devices(e, p);
	yaml_phases(e, p);
	put_trends(e, p, y->info);
	put_deaths(e, p);
	yaml_window(e, p, y->info->windows);
	yaml_stacks(e, p, y->info->stacks);
	put_processes(e, p);
	put_timeline(e, p);
	put_process_timeline(e, p);
	put_usage_timeline(e, p);
	put_gpu_timeline(e, p);
	yaml_recipes(e, quality);
	put_quality(e, p, quality);
	emit_map_end(e);
	emit_end(e);
	yaml_comments(e, units, sizeof(units) / sizeof(*units));
	put_meanings(e, "", &record_recording);
	emit_comment(e, "Texts that are very long are cut and end in \"...\".");
	emit_boundary(e);
	put_definition_comments(e, p);
	return emit_flush(e);
}
