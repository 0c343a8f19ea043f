/* SPDX-License-Identifier: GPL-2.0-only */
/* The phases in the text report, one line for all that are called the same. */
#include <stdlib.h>
#include <string.h>

#include "report/select.h"
#include "report/text_report.h"

enum { COUNT, TOTAL, MEAN, PEAK, OF, GROWTH, N_CELLS };

static void fill_row(const struct recording_named *row, struct table_line *line)
{
	const uint64_t shrunk = row->delta_rss < 0 ? 0 - (uint64_t)row->delta_rss : 0;
	const uint64_t grown = row->delta_rss > 0 ? (uint64_t)row->delta_rss : 0;

	snprintf(line->name, sizeof(line->name), "%s", row->name);
	units_count(line->cells[COUNT], row->count);
	units_time_for_people(line->cells[TOTAL], row->total_ns);
	units_time_for_people(line->cells[MEAN], row->mean_ns);
	units_bytes_for_people(line->cells[PEAK], row->peak_rss);
	snprintf(line->cells[OF], UNITS_TEXT_MAX, "#%llu", (unsigned long long)row->peak_index + 1);
	units_delta_for_people(line->cells[GROWTH], shrunk, grown);
}

/* Of many phases, the one with the peak needs more than a number: what it is within. */
static void put_path(const struct text_report *t, const struct recording_named *row)
{
	static const char lead[] = "    peak in ";

	if (!strcmp(row->peak_path, row->name))
		return;
	fputs(lead, t->table.out);
	table_name(&t->table, row->peak_path, t->table.width - sizeof(lead) + 1, false);
	fputc('\n', t->table.out);
}

static void put_names(const struct text_report *t, const struct recording_named *rows,
		      const struct recording_phase *sums,
		      const struct recording_phase *const *chosen, size_t n)
{
	static const char *const titles[] = {"COUNT", "TOTAL", "MEAN", "PEAK", "IN", "GROWTH"};
	static const unsigned int leaving[] = {GROWTH, MEAN, OF};
	struct table_columns columns = {.titles = titles,
					.n = N_CELLS,
					.leaving = leaving,
					.n_leaving = sizeof(leaving) / sizeof(*leaving)};
	struct table_line line = {0};

	for (size_t i = 0; i < n && i < t->top; i++) {
		fill_row(&rows[chosen[i] - sums], &line);
		table_measure(&columns, &line);
	}
	fputc('\n', t->table.out);
	table_settle(&t->table, &columns, "PHASES BY NAME");
	for (size_t i = 0; i < n && i < t->top; i++) {
		fill_row(&rows[chosen[i] - sums], &line);
		table_settled(&t->table, &columns, &line);
		put_path(t, &rows[chosen[i] - sums]);
	}
	text_more(t, n, "more name(s)");
}

/* What a name's phases took together, as if it were one phase. */
static struct recording_phase sum_of(const struct recording *r, const struct recording_named *row)
{
	return (struct recording_phase){
		.kind = r->phases[row->peak_index].kind,
		.name = row->name,
		.shown = row->name,
		.closed = true,
		.duration_ns = row->total_ns,
		.window_ns = row->window_ns,
		.peak_rss = row->peak_rss,
		.delta_rss = row->delta_rss,
		.usage = row->usage,
		.stretches = row->count,
	};
}

int text_by_name(const struct text_report *t)
{
	struct recording named = {0};
	const struct recording_named *rows;
	const struct recording_phase **chosen = NULL;
	size_t n = 0;

	rows = by_name_rows(t->names, &named.n_phases);
	named.phases = calloc(named.n_phases + 1, sizeof(*named.phases));
	for (size_t i = 0; named.phases && i < named.n_phases; i++)
		named.phases[i] = sum_of(t->r, &rows[i]);
	if (named.phases)
		chosen = select_phases(&named, t->options, &n);
	if (n) {
		put_names(t, rows, named.phases, chosen, n);
		text_usage(t, chosen, n);
	}
	n = chosen ? 0 : 1;
	free(chosen);
	free(named.phases);
	return n ? -1 : 0;
}
