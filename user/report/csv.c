/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CSV (RFC 4180) of one table, for pandas, DuckDB and spreadsheets. The first line has the keys of
 * the profile, the others its values in its units and decimals. An absent value is empty.
 */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "format/by_name.h"
#include "format/ending.h"
#include "format/fields.h"
#include "format/json_metrics.h"
#include "report/metrics.h"
#include "report/renderer.h"

static const char end_of_line[] = "\r\n";

static void put_quoted(FILE *out, const char *text)
{
	putc_unlocked('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc_unlocked('"', out);
		putc_unlocked(*text, out);
	}
	putc_unlocked('"', out);
}

static void put_flags(FILE *out, uint32_t flags)
{
	const char *gap = "";

	for (size_t i = 0; i < N_FLAG_NAMES; i++) {
		if (!(flags & flag_names[i].value))
			continue;
		fprintf(out, "%s%s", gap, flag_names[i].name);
		gap = " ";
	}
}

/* Metrics are a map and a table has no maps: one column has them as JSON. */
static int put_metrics(FILE *out, const struct recording_step *step)
{
	char *text = NULL;
	size_t len;
	FILE *memory;
	struct json_writer j;

	if (!step->n_metrics)
		return 0;
	memory = open_memstream(&text, &len);
	if (!memory)
		return -1;
	j = (struct json_writer){.out = memory};
	json_metrics(&j, step->metrics, step->n_metrics);
	if (fclose(memory))
		return -1;
	text[strcspn(text, "\n")] = '\0';
	put_quoted(out, text);
	free(text);
	return 0;
}

static int put_cell(FILE *out, const struct record *record, size_t i, const void *item)
{
	const struct field *field = &record->fields[i];
	char text[FIELD_TEXT_MAX];

	/* An absent boolean has a value: its default. */
	if (!field_has(record, item, i) && field->kind != FIELD_BOOL)
		return 0;
	if (field->kind == FIELD_METRICS)
		return put_metrics(out, item);
	if (field->kind == FIELD_TEXT)
		put_quoted(out, *(char *const *)field_at(field, item));
	else if (field->kind == FIELD_FLAGS)
		put_flags(out, *(const uint32_t *)field_at(field, item));
	else
		fputs_unlocked(field_scalar(text, record, i, item), out);
	return 0;
}

/* The bits of the columns: all, but for later ones that no item has. */
static uint64_t columns_of(const struct record *record, const char *items, size_t n)
{
	uint64_t columns = 0;

	for (size_t i = 0; i < record->n_fields; i++) {
		const struct field *field = &record->fields[i];
		bool any = field->since < 2;

		if (field->kind == FIELD_LIST || field->kind == FIELD_TABLE)
			continue; /* a table has none */
		for (size_t row = 0; row < n && !any; row++)
			any = field_has(record, items + row * record->size, i);
		columns |= (uint64_t)any << i;
	}
	return columns;
}

/* The first field of each record is in the first format, so it is a column. */
static void put_titles(FILE *out, const struct record *record, uint64_t columns)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		if (columns >> i & 1)
			fprintf(out, "%s%s", i ? "," : "", record->fields[i].key);
	}
}

static int put_cells(FILE *out, const struct record *record, uint64_t columns, const void *item)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		if (!(columns >> i & 1))
			continue;
		if (i)
			putc_unlocked(',', out);
		if (put_cell(out, record, i, item))
			return -1;
	}
	return 0;
}

static int put_records(FILE *out, const struct record *record, const char *items, size_t n)
{
	const uint64_t columns = columns_of(record, items, n);

	put_titles(out, record, columns);
	fputs(end_of_line, out);
	for (size_t row = 0; row < n; row++) {
		if (put_cells(out, record, columns, items + row * record->size))
			return -1;
		fputs_unlocked(end_of_line, out);
	}
	return 0;
}

/* ---- What a run has once ---- */

static int put_totals(FILE *out, const struct recording *r)
{
	const uint64_t columns = columns_of(&record_totals, (const char *)&r->totals, 1);
	struct ending ending;

	recording_ending(r, &ending);
	put_titles(out, &record_totals, columns);
	fprintf(out, ",ending%s", end_of_line);
	if (put_cells(out, &record_totals, columns, &r->totals))
		return -1;
	putc(',', out);
	if (ending.is_bad)
		put_quoted(out, ending.text);
	fputs(end_of_line, out);
	return 0;
}

/* ---- What the program reported ---- */

static void put_metric(FILE *out, const struct profile_metric *metric)
{
	char text[UNITS_TEXT_MAX];

	put_quoted(out, metric->name);
	putc_unlocked(',', out);
	if (metric->kind != PROFILE_UNREADABLE)
		fputs_unlocked(metric_text(text, metric), out);
}

/* Of a metric of the run, only its name and its value. */
static int put_reported(FILE *out, const struct recording *r)
{
	char secs[UNITS_TEXT_MAX];

	fprintf(out, "name,value,relative_time_secs,step,pid,tid%s", end_of_line);
	for (size_t i = 0; i < r->n_summaries; i++) {
		put_metric(out, &r->summaries[i]);
		fprintf(out, ",,,,%s", end_of_line);
	}
	for (size_t i = 0; i < r->n_steps; i++) {
		const struct recording_step *step = &r->steps[i];

		for (size_t k = 0; k < step->n_metrics; k++) {
			put_metric(out, &step->metrics[k]);
			fprintf(out, ",%s,", units_secs(secs, step->rel_ns, SECS_DECIMALS));
			put_quoted(out, step->step);
			fprintf(out, ",%u,%u%s", step->pid, step->tid, end_of_line);
		}
	}
	return 0;
}

static int put_definitions(FILE *out, const struct recording *r)
{
	fprintf(out, "metric_definition%s", end_of_line);
	for (size_t i = 0; i < r->n_definitions; i++) {
		put_quoted(out, r->definitions[i]);
		fputs(end_of_line, out);
	}
	return 0;
}

/* ---- The tables ---- */

static const struct {
	const char *name;
	int (*put)(FILE *out, const struct recording *r); /* NULL: records, as follows */
	const struct record *record;
	size_t items, n; /* offsets in struct recording */
} tables[] = {
#define TABLE(name, member, record)                                                                \
	{                                                                                          \
		name, NULL, &(record), offsetof(struct recording, member),                         \
			offsetof(struct recording, n_##member)                                     \
	}
	TABLE("phases", phases, record_phase),
	TABLE("outside_phases", outside, record_outside),
	TABLE("processes", processes, record_process),
	TABLE("files", files, record_file),
	TABLE("file_systems", spaces, record_space),
	TABLE("storage_devices", devices, record_device),
	TABLE("timeline", points, record_point),
	TABLE("process_timeline", tracks, record_track_point),
	TABLE("usage_timeline", curve, record_usage_point),
	TABLE("gpu_timeline", gpu_curve, record_gpu_point),
	TABLE("memory_usage", steps, record_step),
	{.name = "totals", .put = put_totals},
	{.name = "metrics", .put = put_reported},
	{.name = "metric_definitions", .put = put_definitions},
#undef TABLE
};

static int put_table(FILE *out, const struct recording *r, size_t i)
{
	const char *at = (const char *)r;

	return tables[i].put ? tables[i].put(out, r)
			     : put_records(out, tables[i].record,
					   *(const char *const *)(at + tables[i].items),
					   *(const size_t *)(at + tables[i].n));
}

static int put_by_name(FILE *out, const struct recording *r)
{
	struct by_name *b = by_name_new(r);
	const struct recording_named *rows;
	size_t n;
	int failed;

	if (!b)
		return -1;
	rows = by_name_rows(b, &n);
	failed = put_records(out, &record_named, (const char *)rows, n);
	by_name_free(b);
	return failed;
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	if (options->by_name && options->table)
		return error_set(err, "--by name is of phases: --table %s has none",
				 csv_table(options->table));
	if (options->by_name ? put_by_name(out, r) : put_table(out, r, options->table))
		return error_set(err, "not enough memory for the report");
	return 0;
}

const char *csv_table(size_t i)
{
	return i < sizeof(tables) / sizeof(*tables) ? tables[i].name : NULL;
}

const struct renderer renderer_csv = {
	.name = "csv",
	.extension = ".csv",
	.what = "one table, see --table",
	.render = render,
};
