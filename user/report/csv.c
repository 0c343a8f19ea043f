/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CSV (RFC 4180) of one table, for pandas, DuckDB and spreadsheets. The first line has the keys of
 * the profile, the others its values in its units and decimals. An absent value is empty.
 */
#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "format/json_metrics.h"
#include "report/renderer.h"

static const struct {
	const char *name;
	const struct record *record;
	size_t items, n; /* offsets in struct recording */
} tables[] = {
#define TABLE(name, member, record)                                                                \
	{                                                                                          \
		name, &(record), offsetof(struct recording, member),                               \
			offsetof(struct recording, n_##member)                                     \
	}
	TABLE("phases", phases, record_phase),
	TABLE("processes", processes, record_process),
	TABLE("timeline", points, record_point),
	TABLE("process_timeline", tracks, record_track_point),
	TABLE("memory_usage", steps, record_step),
#undef TABLE
};

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
static uint32_t columns_of(const struct record *record, const char *items, size_t n)
{
	uint32_t columns = 0;

	for (size_t i = 0; i < record->n_fields; i++) {
		bool any = record->fields[i].since < 2;

		for (size_t row = 0; row < n && !any; row++)
			any = field_has(record, items + row * record->size, i);
		columns |= (uint32_t)any << i;
	}
	return columns;
}

/* The first field of each record is in the first format, so it is a column. */
static int put_table(FILE *out, const struct record *record, const char *items, size_t n)
{
	const uint32_t columns = columns_of(record, items, n);

	for (size_t i = 0; i < record->n_fields; i++) {
		if (columns >> i & 1)
			fprintf(out, "%s%s", i ? "," : "", record->fields[i].key);
	}
	fputs("\r\n", out);
	for (size_t row = 0; row < n; row++) {
		for (size_t i = 0; i < record->n_fields; i++) {
			if (!(columns >> i & 1))
				continue;
			if (i)
				putc_unlocked(',', out);
			if (put_cell(out, record, i, items + row * record->size))
				return -1;
		}
		fputs_unlocked("\r\n", out);
	}
	return 0;
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	const char *at = (const char *)r;
	const size_t i = options->table;

	if (put_table(out, tables[i].record, *(const char *const *)(at + tables[i].items),
		      *(const size_t *)(at + tables[i].n)))
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
