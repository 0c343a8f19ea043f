/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * JSON: the profile with the keys, units and decimals of the file, then what the other reports
 * calculate from it. docs/profile.schema.json describes both.
 */
#include <string.h>

#include "format/ending.h"
#include "format/by_name.h"
#include "format/fields.h"
#include "format/json_metrics.h"
#include "base/json_writer.h"
#include "report/ranks.h"
#include "report/renderer.h"
#include "base/units.h"

static void put_record(struct json_writer *j, const struct record *record, const void *item);

static void put_flags(struct json_writer *j, uint32_t flags)
{
	json_compact(j);
	json_array(j);
	for (size_t i = 0; i < N_FLAG_NAMES; i++) {
		if (flags & flag_names[i].value)
			json_text(j, flag_names[i].name);
	}
	json_array_end(j);
}

static void put_texts(struct json_writer *j, char *const *texts, size_t n)
{
	json_array(j);
	for (size_t i = 0; i < n; i++)
		json_text(j, texts[i]);
	json_array_end(j);
}

static void put_numbers(struct json_writer *j, const uint32_t *numbers, size_t n)
{
	json_compact(j);
	json_array(j);
	for (size_t i = 0; i < n; i++)
		json_u64(j, numbers[i]);
	json_array_end(j);
}

static void put_list(struct json_writer *j, const struct record *record, const char *items,
		     size_t n)
{
	json_array(j);
	for (size_t i = 0; i < n; i++) {
		json_object(j);
		put_record(j, record, items + i * record->size);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_value(struct json_writer *j, const struct record *record, size_t i,
		      const void *item);

static void put_table(struct json_writer *j, const struct record *record, const char *rows,
		      size_t n)
{
	json_object(j);
	json_key(j, "columns");
	json_compact(j);
	json_array(j);
	for (size_t i = 0; i < record->n_fields; i++)
		json_text(j, record->fields[i].key);
	json_array_end(j);
	json_key(j, "rows");
	json_array(j);
	for (size_t row = 0; row < n; row++) {
		json_compact(j);
		json_array(j);
		for (size_t i = 0; i < record->n_fields; i++)
			put_value(j, record, i, rows + row * record->size);
		json_array_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void put_any_list(struct json_writer *j, const struct field *field, const void *item)
{
	size_t n;
	const void *items = field_list(field, item, &n);

	if (field->kind == FIELD_TEXTS)
		put_texts(j, items, n);
	else if (field->kind == FIELD_U32S)
		put_numbers(j, items, n);
	else if (field->kind == FIELD_METRICS)
		json_metrics(j, items, n);
	else if (field->kind == FIELD_TABLE)
		put_table(j, field->of, items, n);
	else
		put_list(j, field->of, items, n);
}

/* A field's value: a word or a list; null if it is absent. */
static void put_value(struct json_writer *j, const struct record *record, size_t i,
		      const void *item)
{
	const struct field *field = &record->fields[i];
	char text[FIELD_TEXT_MAX];

	if (field->kind == FIELD_TEXT)
		json_text(j, *(char *const *)field_at(field, item));
	else if (field->kind == FIELD_FLAGS)
		put_flags(j, *(const uint32_t *)field_at(field, item));
	else if (field->kind == FIELD_KIND)
		json_text(j, field_scalar(text, record, i, item));
	else if (field_is_list(field))
		put_any_list(j, field, item);
	else
		json_plain(j, field_has(record, item, i) ? field_scalar(text, record, i, item)
							 : "null");
}

static void put_counts(struct json_writer *j, const struct field *field, const void *item)
{
	size_t n;
	const struct recording_count *counts = field_list(field, item, &n);

	for (size_t i = 0; i < n; i++) {
		json_key(j, counts[i].key);
		json_u64(j, counts[i].count);
	}
}

/* The names in a file are those of no key, but a file of others may have any that is only ours. */
static void put_summaries(struct json_writer *j, const struct field *field, const void *item)
{
	size_t n;
	const struct profile_metric *metrics = field_list(field, item, &n);

	for (size_t i = 0; i < n; i++) {
		json_key(j, strcmp(metrics[i].name, FIELD_REPORT) ? metrics[i].name
								  : FIELD_REPORT FIELD_AGAIN);
		json_metric_value(j, &metrics[i]);
	}
}

static void put_field(struct json_writer *j, const struct record *record, size_t i,
		      const void *item)
{
	const struct field *field = &record->fields[i];

	if (field->kind == FIELD_COUNTS) {
		put_counts(j, field, item);
	} else if (field->kind == FIELD_METRICS && !field->key) {
		put_summaries(j, field, item);
	} else if (field->kind == FIELD_MAP && !field->key) {
		put_record(j, field->of, field_at(field, item));
	} else if (field_has(record, item, i) || field->nullable) {
		json_key(j, field->key);
		if (field->kind != FIELD_MAP) {
			put_value(j, record, i, item);
			return;
		}
		json_object(j);
		put_record(j, field->of, field_at(field, item));
		json_object_end(j);
	}
}

static void put_record(struct json_writer *j, const struct record *record, const void *item)
{
	for (size_t i = 0; i < record->n_fields; i++)
		put_field(j, record, i, item);
}

static void put_bytes(struct json_writer *j, const char *key, uint64_t bytes)
{
	char text[UNITS_TEXT_MAX];

	json_key(j, key);
	json_plain(j, units_mb(text, bytes));
}

static void put_need(struct json_writer *j, const struct recording_need *need)
{
	char text[UNITS_TEXT_MAX];

	json_key(j, "needed_at_least_mb");
	json_plain(j, need->knows_least ? units_mb(text, need->least) : "null");
	put_bytes(j, "needed_mb", need->most);
	put_bytes(j, "files_mb", need->files);
}

/* What the run needs, then each phase, in order. Returns -1 when out of memory. */
static int put_fit(struct json_writer *j, const struct recording *r)
{
	struct recording_needs *needs = recording_needs_new(r);
	struct recording_need need;

	if (!needs)
		return -1;
	json_key(j, "will_it_fit");
	if (!recording_need(needs, 0, UINT64_MAX, &need)) {
		json_plain(j, "null");
		recording_needs_free(needs);
		return 0;
	}
	json_object(j);
	put_need(j, &need);
	if (r->totals.peak_hugetlb)
		put_bytes(j, "hugetlb_mb", r->totals.peak_hugetlb);
	json_key(j, "phases");
	json_array(j);
	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		recording_need(needs, phase->start_ns, phase->start_ns + phase->duration_ns, &need);
		json_compact(j);
		json_object(j);
		put_need(j, &need);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
	recording_needs_free(needs);
	return 0;
}

static void put_derived(struct json_writer *j, const struct recording *r)
{
	json_key(j, "derived");
	json_compact(j);
	json_array(j);
	if (r->derived.totals)
		json_text(j, "totals");
	if (r->derived.phases)
		json_text(j, "phases");
	if (r->derived.points)
		json_text(j, "timeline");
	json_array_end(j);
}

static void put_peak(struct json_writer *j, const struct recording *r)
{
	const struct recording_phase *phase = recording_peak_phase(r);
	char text[UNITS_TEXT_MAX];

	json_key(j, "peak");
	json_object(j);
	json_key(j, "time_secs");
	json_plain(j, units_secs(text, recording_peak_ns(r), 6));
	json_key(j, "phase");
	json_text(j, phase ? phase->shown : NULL);
	json_key(j, "phase_index");
	json_plain(j, phase ? units_count(text, (uint64_t)(phase - r->phases)) : "null");
	json_object_end(j);
}

static int put_by_name(struct json_writer *j, const struct recording *r)
{
	struct by_name *b = by_name_new(r);
	const struct recording_named *rows;
	size_t n;

	if (!b)
		return -1;
	rows = by_name_rows(b, &n);
	json_key(j, "phases_by_name");
	put_list(j, &record_named, (const char *)rows, n);
	by_name_free(b);
	return 0;
}

static int put_ranks(struct json_writer *j, const struct recording *r)
{
	struct ranks ranks;

	if (ranks_make(&ranks, r))
		return -1;
	if (ranks.n > 1)
		ranks_json(&ranks, j);
	ranks_free(&ranks);
	return 0;
}

/* What the file does not have. */
static int put_report(struct json_writer *j, const struct recording *r,
		      const struct render_options *options)
{
	struct ending ending;

	recording_ending(r, &ending);
	json_key(j, "report");
	json_object(j);
	json_key(j, "partial");
	json_text(j, r->partial ? r->partial_text : NULL);
	json_member_text(j, "ending", ending.is_bad ? ending.text : NULL);
	put_derived(j, r);
	put_peak(j, r);
	if (put_ranks(j, r) || put_fit(j, r) || (options->by_name && put_by_name(j, r)))
		return -1;
	json_object_end(j);
	return 0;
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	struct json_writer j = {.out = out, .pretty = true};

	json_object(&j);
	put_record(&j, &record_recording, r);
	if (put_report(&j, r, options))
		return error_set(err, "not enough memory for the report");
	json_object_end(&j);
	return 0;
}

const struct renderer renderer_json = {
	.name = "json",
	.extension = ".json",
	.what = "the profile as JSON, with the keys of the file",
	.render = render,
};
