// SPDX-License-Identifier: GPL-2.0-only
/* What the outputs share, and the formats for programs. */
#include "bench/outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/units.h"

char *bench_cell(char *cell, const struct bench_row *row, enum bench_figure figure,
		 bool with_spread)
{
	const struct bench_values *values = &row->figures[figure];
	char text[UNITS_TEXT_MAX];
	double spread;

	if (!values->n) {
		snprintf(cell, BENCH_CELL_MAX, "%s", row->n_failures ? "failed" : "-");
		return cell;
	}
	if (bench_figures[figure].unit == QUANTITY_BYTES)
		units_bytes_short(text, values->median);
	else
		units_time_for_people(text, values->median);
	spread = values->median ? 50.0 * (double)(values->highest - values->lowest) /
					  (double)values->median
				: 0;
	if (with_spread && values->n > 1 && spread >= 0.05)
		snprintf(cell, BENCH_CELL_MAX, spread < 9.95 ? "%s +-%.1f%%" : "%s +-%.0f%%", text,
			 spread);
	else
		snprintf(cell, BENCH_CELL_MAX, "%s", text);
	return cell;
}

/* ---- A matrix ---------------------------------------------------------------------------------
 */

/* "bits=8, group=32": all parameters of a combination but the pivot. */
static char *other_label(const struct parameters *p, size_t combination, size_t pivot)
{
	char *label = NULL;
	size_t size;
	FILE *out = open_memstream(&label, &size);
	const char *gap = "";

	if (!out)
		return NULL;
	for (size_t i = 0; i < p->n; i++) {
		if (i == pivot)
			continue;
		fprintf(out, "%s%s=%s", gap, p->items[i].name, parameters_value(p, combination, i));
		gap = ", ";
	}
	if (!fclose(out))
		return label;
	free(label);
	return NULL;
}

/* Combinations count as digits do: those that differ in the pivot alone are `stride` apart. */
int matrix_make(struct bench_matrix *matrix, const struct bench *b, size_t pivot)
{
	const struct parameters *p = &b->parameters;
	const size_t n = parameters_combinations(p), columns = p->items[pivot].n;
	size_t stride = 1;

	for (size_t i = pivot + 1; i < p->n; i++)
		stride *= p->items[i].n;
	*matrix = (struct bench_matrix){
		.n_columns = columns,
		.combinations = calloc(n, sizeof(*matrix->combinations)),
		.labels = calloc(n / columns, sizeof(*matrix->labels)),
	};
	if (!matrix->combinations || !matrix->labels)
		return -ENOMEM;
	for (size_t first = 0; first < n; first++) {
		if (first / stride % columns)
			continue;
		for (size_t k = 0; k < columns; k++)
			matrix->combinations[matrix->n_rows * columns + k] = first + k * stride;
		matrix->labels[matrix->n_rows] = other_label(p, first, pivot);
		if (!matrix->labels[matrix->n_rows++])
			return -ENOMEM;
	}
	return 0;
}

void matrix_free(struct bench_matrix *matrix)
{
	for (size_t i = 0; matrix->labels && i < matrix->n_rows; i++)
		free(matrix->labels[i]);
	free(matrix->labels);
	free(matrix->combinations);
}

/* ---- CSV: keys and units as a profile has them ------------------------------------------------
 */

static const char *unit_of(enum quantity_unit unit)
{
	return unit == QUANTITY_BYTES ? "_mb" : "_secs";
}

static void put_amount(FILE *out, enum quantity_unit unit, uint64_t amount)
{
	char text[UNITS_TEXT_MAX];

	fputs(quantity_text(text, unit, amount), out);
}

static void put_quoted(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			putc('"', out);
		putc(*text, out);
	}
	putc('"', out);
}

static void csv_titles(const struct bench_results *results, FILE *out)
{
	const struct parameters *p = &results->b->parameters;

	fputs("name", out);
	for (size_t i = 0; i < p->n; i++)
		fprintf(out, ",parameter_%s", p->items[i].name);
	fputs(",runs,failed", out);
	for (int i = 0; i < BENCH_FIGURES; i++) {
		const struct bench_figure_info *info = &bench_figures[i];

		if (results->has[i])
			fprintf(out, ",%s%s,%s%s_lowest,%s%s_highest", info->key,
				unit_of(info->unit), info->key, unit_of(info->unit), info->key,
				unit_of(info->unit));
	}
	fputs("\r\n", out);
}

int bench_csv(const struct bench_results *results, const struct bench_view *view, FILE *out)
{
	const struct parameters *p = &results->b->parameters;

	(void)view;
	csv_titles(results, out);
	for (size_t r = 0; r < results->n_rows; r++) {
		const struct bench_row *row = &results->rows[r];

		put_quoted(out, row->label);
		for (size_t i = 0; i < p->n; i++) {
			putc(',', out);
			put_quoted(out, parameters_value(p, row->combination, i));
		}
		fprintf(out, ",%u,%zu", row->finished, row->n_failures);
		for (int i = 0; i < BENCH_FIGURES; i++) {
			const struct bench_values *values = &row->figures[i];
			const uint64_t shown[] = {values->median, values->lowest, values->highest};

			for (size_t k = 0; results->has[i] && k < 3; k++) {
				putc(',', out);
				if (values->n)
					put_amount(out, bench_figures[i].unit, shown[k]);
			}
		}
		fputs("\r\n", out);
	}
	return 0;
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

static void json_amount(struct json_writer *j, const char *key, enum quantity_unit unit,
			uint64_t amount)
{
	char text[UNITS_TEXT_MAX];

	json_key(j, key);
	json_plain(j, quantity_text(text, unit, amount));
}

static void json_figure(struct json_writer *j, const struct bench_figure_info *info,
			const struct bench_values *values)
{
	char key[64];

	snprintf(key, sizeof(key), "%s%s", info->key, unit_of(info->unit));
	json_key(j, key);
	json_object(j);
	json_amount(j, "median", info->unit, values->median);
	json_amount(j, "lowest", info->unit, values->lowest);
	json_amount(j, "highest", info->unit, values->highest);
	json_amount(j, "mean", info->unit, (uint64_t)(values->mean + 0.5));
	json_amount(j, "deviation", info->unit, (uint64_t)(values->deviation + 0.5));
	json_key(j, "values");
	json_compact(j);
	json_array(j);
	for (size_t i = 0; i < values->n; i++) {
		char text[UNITS_TEXT_MAX];

		json_plain(j, quantity_text(text, info->unit, values->items[i]));
	}
	json_array_end(j);
	json_object_end(j);
}

static void json_failures(struct json_writer *j, const struct bench_row *row)
{
	json_key(j, "failures");
	json_array(j);
	for (size_t i = 0; i < row->n_failures; i++) {
		json_object(j);
		json_member_u64(j, "run", row->failures[i].repeat + 1);
		json_member_text(j, "ended", row->failures[i].how);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_row(struct json_writer *j, const struct bench *b, const struct bench_row *row)
{
	json_object(j);
	json_member_text(j, "name", row->label);
	json_key(j, "parameters");
	json_compact(j);
	json_object(j);
	for (size_t i = 0; i < b->parameters.n; i++)
		json_member_text(j, b->parameters.items[i].name,
				 parameters_value(&b->parameters, row->combination, i));
	json_object_end(j);
	json_member_u64(j, "runs", row->finished);
	json_failures(j, row);
	json_key(j, "figures");
	json_object(j);
	for (int i = 0; i < BENCH_FIGURES; i++)
		if (row->figures[i].n)
			json_figure(j, &bench_figures[i], &row->figures[i]);
	json_object_end(j);
	json_object_end(j);
}

int bench_json(const struct bench_results *results, const struct bench_view *view, FILE *out)
{
	struct json_writer j = {.out = out, .pretty = true};
	const struct bench *b = results->b;

	(void)view;
	json_object(&j);
	json_key(&j, "command");
	json_compact(&j);
	json_array(&j);
	for (size_t i = 0; i < b->n_command; i++)
		json_text(&j, b->command[i]);
	json_array_end(&j);
	json_member_u64(&j, "repeats", b->repeats);
	json_member_bool(&j, "shuffled", b->is_shuffled);
	json_member_u64(&j, "seed", b->seed);
	if (results->phase)
		json_member_text(&j, "phase", results->phase);
	json_key(&j, "results");
	json_array(&j);
	for (size_t i = 0; i < results->n_rows; i++)
		json_row(&j, b, &results->rows[i]);
	json_array_end(&j);
	json_object_end(&j);
	return 0;
}
