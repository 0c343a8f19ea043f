// SPDX-License-Identifier: GPL-2.0-only
/* The results as a table for people, and the same in Markdown. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "bench/outputs.h"

enum { MAX_FAILURES = 10, MAX_NAME = 60, MAX_TITLE = 20 };

/* Of a median in its column: "*" the lowest, "!" the highest. */
static char mark_of(const struct bench_extremes *extremes, size_t row)
{
	if (row == extremes->lowest)
		return '*';
	return row == extremes->highest ? '!' : ' ';
}

static void put_cell(char *out, size_t size, const struct bench_row *row, enum bench_figure figure,
		     char mark)
{
	char cell[BENCH_CELL_MAX];

	snprintf(out, size, "%s%c", bench_cell(cell, row, figure, true), mark);
}

/* ---- A row for each combination ---------------------------------------------------------------
 */

static void fill_line(const struct bench_results *results, size_t at,
		      const struct bench_extremes *extremes, struct table_line *line)
{
	const struct bench_row *row = &results->rows[at];
	unsigned int n = 0;

	*line = (struct table_line){0};
	snprintf(line->name, sizeof(line->name), "%s", row->label);
	for (int i = 0; i < BENCH_FIGURES; i++)
		if (results->has[i])
			put_cell(line->cells[n++], sizeof(line->cells[0]), row,
				 (enum bench_figure)i, mark_of(&extremes[i], at));
	if (row->n_failures)
		snprintf(line->cells[n], sizeof(line->cells[0]), "%u, %zu failed", row->finished,
			 row->n_failures);
	else
		snprintf(line->cells[n], sizeof(line->cells[0]), "%u", row->finished);
}

static void put_rows(const struct bench_results *results, const struct table *table)
{
	/* Written and read say least, the peak most. */
	static const unsigned int leaving[] = {BENCH_WRITE, BENCH_READ, BENCH_CPU, BENCH_GPU,
					       BENCH_NEED};
	struct bench_extremes extremes[BENCH_FIGURES];
	const char *titles[MAX_CELLS];
	unsigned int leaves[BENCH_FIGURES], n_leaving = 0, column[BENCH_FIGURES];
	struct table_columns columns = {.titles = titles};
	struct table_line line;

	for (int i = 0; i < BENCH_FIGURES; i++) {
		extremes[i] = results_extremes(results, (enum bench_figure)i);
		column[i] = columns.n;
		if (results->has[i])
			titles[columns.n++] = bench_figures[i].title;
	}
	for (size_t i = 0; i < sizeof(leaving) / sizeof(*leaving); i++)
		if (results->has[leaving[i]])
			leaves[n_leaving++] = column[leaving[i]];
	titles[columns.n++] = "RUNS";
	columns.leaving = leaves;
	columns.n_leaving = n_leaving;
	for (size_t i = 0; i < results->n_rows; i++) {
		fill_line(results, i, extremes, &line);
		table_measure(&columns, &line);
	}
	table_settle(table, &columns, "COMBINATION");
	for (size_t i = 0; i < results->n_rows; i++) {
		fill_line(results, i, extremes, &line);
		table_settled(table, &columns, &line);
	}
}

/* ---- A matrix for each figure -----------------------------------------------------------------
 */

static void put_matrix(const struct bench_results *results, const struct bench_matrix *m,
		       enum bench_figure figure, const struct parameter *pivot,
		       const struct table *table)
{
	const struct bench_extremes extremes = results_extremes(results, figure);
	const size_t shown = m->n_columns < MAX_CELLS ? m->n_columns : MAX_CELLS;
	char safe[MAX_CELLS][MAX_TITLE * TEXT_TERMINAL_GROWTH + 1], title[128];
	const char *titles[MAX_CELLS];
	struct table_columns columns = {.titles = titles, .n = (unsigned int)shown};
	struct table_line line;

	for (size_t i = 0; i < shown; i++) {
		text_cut_middle(safe[i], pivot->values[i], MAX_TITLE);
		titles[i] = safe[i];
	}
	for (int pass = 0; pass < 2; pass++) {
		for (size_t r = 0; r < m->n_rows; r++) {
			line = (struct table_line){0};
			snprintf(line.name, sizeof(line.name), "%s", m->labels[r]);
			for (size_t i = 0; i < shown; i++) {
				const size_t at = m->combinations[r * m->n_columns + i];

				put_cell(line.cells[i], sizeof(line.cells[0]), &results->rows[at],
					 figure, mark_of(&extremes, at));
			}
			if (pass)
				table_settled(table, &columns, &line);
			else
				table_measure(&columns, &line);
		}
		if (!pass) {
			snprintf(title, sizeof(title), "%s BY %.64s", bench_figures[figure].title,
				 pivot->name);
			table_settle(table, &columns, title);
		}
	}
	table_more(table, m->n_columns, shown, "more column(s)", "CSV");
	fputc('\n', table->out);
}

static int put_matrices(const struct bench_results *results, const struct bench_view *view,
			const struct table *table)
{
	const struct bench *b = results->b;
	struct bench_matrix m;
	const int failed = matrix_make(&m, b, view->pivot);

	for (int i = 0; i < BENCH_FIGURES && !failed; i++)
		if (results->has[i])
			put_matrix(results, &m, (enum bench_figure)i,
				   &b->parameters.items[view->pivot], table);
	matrix_free(&m);
	return failed;
}

/* ---- The whole --------------------------------------------------------------------------------
 */

static void put_failures(const struct bench_results *results, const struct table *table)
{
	const size_t n = results_failed(results);
	char lead[MAX_NAME * TEXT_TERMINAL_GROWTH + 64], label[MAX_NAME * TEXT_TERMINAL_GROWTH + 1];
	size_t shown = 0;

	if (!n)
		return;
	fputc('\n', table->out);
	for (size_t i = 0; i < results->n_rows; i++) {
		const struct bench_row *row = &results->rows[i];

		text_cut_middle(label, row->label, MAX_NAME);
		for (size_t k = 0; k < row->n_failures && shown < MAX_FAILURES; k++, shown++) {
			snprintf(lead, sizeof(lead), "%*s%s, run %u: ", INDENT, "", label,
				 row->failures[k].repeat + 1);
			table_tone(table, WARNING);
			table_wrapped(table, lead, row->failures[k].how);
			table_tone(table, PLAIN);
		}
	}
	table_more(table, n, shown, "more failed run(s)", "JSON");
}

static void put_legend(const struct bench_results *results, const struct table *table)
{
	bool is_marked = false;

	for (int i = 0; i < BENCH_FIGURES; i++) {
		const struct bench_extremes e = results_extremes(results, (enum bench_figure)i);

		is_marked |= results->has[i] && e.lowest < results->n_rows;
	}
	fprintf(table->out,
		"\n%*sMedians%s; +- is half of what lies between the lowest and the highest"
		" run.%s\n",
		INDENT, "", results->phase ? " of the phases that were asked for" : "",
		is_marked ? " * lowest, ! highest." : "");
}

int bench_text(const struct bench_results *results, const struct bench_view *view, FILE *out)
{
	struct table table = {.out = out,
			      .width = table_width(view->width, MAX_WIDTH),
			      .min_name = MIN_NAME,
			      .max_name = MAX_NAME,
			      .indent_titles = INDENT,
			      .colour = view->colour};
	int failed = 0;

	if (view->pivot == BENCH_NO_PIVOT)
		put_rows(results, &table);
	else
		failed = put_matrices(results, view, &table);
	put_failures(results, &table);
	put_legend(results, &table);
	return failed;
}

/* ---- Markdown ---------------------------------------------------------------------------------
 */

/* Text within a cell: a bar would end it, a tag would be one. */
static void put_markdown(FILE *out, const char *text)
{
	char safe[MAX_WIDTH * TEXT_TERMINAL_GROWTH + 1];

	text_for_terminal(safe, sizeof(safe), text, MAX_WIDTH);
	for (const char *at = safe; *at; at++) {
		if (strchr("|\\`*_<[", *at))
			putc('\\', out);
		putc(*at, out);
	}
}

static void put_markdown_figure(FILE *out, const struct bench_results *results, size_t row,
				enum bench_figure figure)
{
	const struct bench_extremes e = results_extremes(results, figure);
	const char *bold = row == e.lowest ? "**" : row == e.highest ? "_" : "";
	char cell[BENCH_CELL_MAX], *sign;

	bench_cell(cell, &results->rows[row], figure, true);
	sign = strstr(cell, "+-");
	if (sign) /* a text for people, not columns of bytes */
		fprintf(out, " %s%.*s± %s%s |", bold, (int)(sign - cell), cell, sign + 2, bold);
	else
		fprintf(out, " %s%s%s |", bold, cell, bold);
}

static void markdown_rows(const struct bench_results *results, FILE *out)
{
	const struct parameters *p = &results->b->parameters;
	size_t columns = 0;

	fputs("|", out);
	for (size_t i = 0; i < p->n; i++, columns++) {
		fputs(" ", out);
		put_markdown(out, p->items[i].name);
		fputs(" |", out);
	}
	if (!p->n) {
		fputs(" command |", out);
		columns++;
	}
	for (int i = 0; i < BENCH_FIGURES; i++)
		if (results->has[i])
			fprintf(out, " %s |", bench_figures[i].words);
	fputs(" runs |\n|", out);
	for (size_t i = 0; i < columns; i++)
		fputs(":---|", out);
	for (int i = 0; i < BENCH_FIGURES; i++)
		if (results->has[i])
			fputs("---:|", out);
	fputs("---:|\n", out);
	for (size_t r = 0; r < results->n_rows; r++) {
		const struct bench_row *row = &results->rows[r];

		fputs("|", out);
		for (size_t i = 0; i < columns; i++) {
			fputs(" ", out);
			put_markdown(out,
				     p->n ? parameters_value(p, row->combination, i) : row->label);
			fputs(" |", out);
		}
		for (int i = 0; i < BENCH_FIGURES; i++)
			if (results->has[i])
				put_markdown_figure(out, results, r, (enum bench_figure)i);
		fprintf(out, " %u", row->finished);
		if (row->n_failures)
			fprintf(out, ", %zu failed", row->n_failures);
		fputs(" |\n", out);
	}
}

static void markdown_matrix(const struct bench_results *results, const struct bench_matrix *m,
			    enum bench_figure figure, const struct parameter *pivot, FILE *out)
{
	fputs("| ", out);
	put_markdown(out, bench_figures[figure].words);
	fputs(" |", out);
	for (size_t i = 0; i < m->n_columns; i++) {
		fputs(" ", out);
		put_markdown(out, pivot->name);
		fputs("=", out);
		put_markdown(out, pivot->values[i]);
		fputs(" |", out);
	}
	fputs("\n|:---|", out);
	for (size_t i = 0; i < m->n_columns; i++)
		fputs("---:|", out);
	fputs("\n", out);
	for (size_t r = 0; r < m->n_rows; r++) {
		fputs("| ", out);
		put_markdown(out, m->labels[r]);
		fputs(" |", out);
		for (size_t i = 0; i < m->n_columns; i++)
			put_markdown_figure(out, results, m->combinations[r * m->n_columns + i],
					    figure);
		fputs("\n", out);
	}
	fputs("\n", out);
}

int bench_markdown(const struct bench_results *results, const struct bench_view *view, FILE *out)
{
	struct bench_matrix m;
	int failed;

	if (view->pivot == BENCH_NO_PIVOT) {
		markdown_rows(results, out);
		return 0;
	}
	failed = matrix_make(&m, results->b, view->pivot);
	for (int i = 0; i < BENCH_FIGURES && !failed; i++)
		if (results->has[i])
			markdown_matrix(results, &m, (enum bench_figure)i,
					&results->b->parameters.items[view->pivot], out);
	matrix_free(&m);
	return failed;
}
