// SPDX-License-Identifier: GPL-2.0-only
/* The results as a page: a heat map of each figure, with a dot for each run. Needs no script. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/outputs.h"
#include "report/markup.h"

enum { MAX_COLUMNS = 200, STRIP = 96, STRIP_HIGH = 14 };

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'unsafe-inline'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<title>qprof-bpf bench</title>\n<style>\n"
	":root{color-scheme:light dark;--ink:#1c2024;--soft:#62686e;--line:#d9dde1;--page:#fff;"
	"--low:#e8f1fb;--high:#1f6fb2;--on:#fff;--bad:#b3261e}\n"
	"@media(prefers-color-scheme:dark){:root{--ink:#e6e8ea;--soft:#9aa1a8;--line:#3a4046;"
	"--page:#16191c;--low:#1d2a36;--high:#4a9be0;--on:#0b0d0f;--bad:#ff8a80}}\n"
	"body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);"
	"margin:2rem auto;max-width:90rem;padding:0 1rem}\n"
	"h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .5rem}\n"
	"p{color:var(--soft);margin:.3rem 0}code{font-family:ui-monospace,monospace}\n"
	"div.wide{overflow-x:auto}table{border-collapse:collapse}"
	"th,td{padding:.35rem .7rem;border:1px solid var(--line);text-align:right;"
	"font-variant-numeric:tabular-nums;white-space:nowrap}\n"
	"th{font-weight:600}th.name{text-align:left}"
	"td small{display:block;opacity:.75}td svg{display:block;margin:.15rem 0 0 auto}\n"
	"td.strong{color:var(--on)}tr.extreme td{font-weight:600}.bad{color:var(--bad)}\n"
	"b.mark{font-weight:700}circle{fill:currentColor;fill-opacity:.55}"
	"svg line{stroke:currentColor;stroke-opacity:.35}\n"
	"</style></head><body>\n";

struct page {
	const struct bench_results *results;
	FILE *out;
};

/* ---- A cell -----------------------------------------------------------------------------------
 */

/* Runs as dots between the lowest and the highest of the whole figure. */
static void put_strip(const struct page *page, const struct bench_values *values, uint64_t lowest,
		      uint64_t highest)
{
	const double span = (double)(highest - lowest);

	if (values->n < 2 || highest <= lowest)
		return;
	fprintf(page->out,
		"<svg width=\"%d\" height=\"%d\" aria-hidden=\"true\">"
		"<line x1=\"4\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>",
		STRIP, STRIP_HIGH, STRIP - 4, STRIP_HIGH / 2, STRIP_HIGH / 2);
	for (size_t i = 0; i < values->n; i++)
		fprintf(page->out, "<circle cx=\"%.1f\" cy=\"%d\" r=\"3.5\"/>",
			4 + (STRIP - 8) * (double)(values->items[i] - lowest) / span,
			STRIP_HIGH / 2);
	fputs("</svg>", page->out);
}

/* The lowest and the highest run of all. */
static void range_of(const struct bench_results *results, enum bench_figure figure,
		     uint64_t *lowest, uint64_t *highest)
{
	*lowest = UINT64_MAX;
	*highest = 0;
	for (size_t i = 0; i < results->n_rows; i++) {
		const struct bench_values *values = &results->rows[i].figures[figure];

		if (!values->n)
			continue;
		if (values->lowest < *lowest)
			*lowest = values->lowest;
		if (values->highest > *highest)
			*highest = values->highest;
	}
}

static void put_cell(const struct page *page, size_t row, enum bench_figure figure)
{
	const struct bench_values *values = &page->results->rows[row].figures[figure];
	const struct bench_extremes e = results_extremes(page->results, figure);
	uint64_t lowest, highest;
	char cell[BENCH_CELL_MAX], *sign;
	double heat = 0;

	if (!values->n) {
		fprintf(page->out, "<td class=\"bad\">%s</td>",
			bench_cell(cell, &page->results->rows[row], figure, false));
		return;
	}
	range_of(page->results, figure, &lowest, &highest);
	if (e.lowest < page->results->n_rows)
		heat = (double)(values->median - lowest) / (double)(highest - lowest);
	fprintf(page->out,
		"<td%s style=\"background:color-mix(in oklab,var(--high) %.0f%%,var(--low))\">",
		heat > 0.55 ? " class=\"strong\"" : "", 100 * heat);
	bench_cell(cell, &page->results->rows[row], figure, true);
	sign = strstr(cell, " +-");
	fprintf(page->out, "%.*s%s", sign ? (int)(sign - cell) : (int)strlen(cell), cell,
		row == e.lowest	   ? " <b class=\"mark\">lowest</b>"
		: row == e.highest ? " <b class=\"mark\">highest</b>"
				   : "");
	if (sign)
		fprintf(page->out, "<small>&plusmn; %s</small>", sign + 3);
	put_strip(page, values, lowest, highest);
	fputs("</td>", page->out);
}

static void put_name(const struct page *page, const char *text)
{
	fputs("<th class=\"name\" scope=\"row\">", page->out);
	markup_text(page->out, text, MAX_COLUMNS);
	fputs("</th>", page->out);
}

/* ---- Tables -----------------------------------------------------------------------------------
 */

static void put_rows(const struct page *page)
{
	const struct bench_results *results = page->results;

	fputs("<div class=\"wide\"><table><thead><tr><th class=\"name\">Combination</th>",
	      page->out);
	for (int i = 0; i < BENCH_FIGURES; i++)
		if (results->has[i])
			fprintf(page->out, "<th scope=\"col\">%s</th>", bench_figures[i].words);
	fputs("<th scope=\"col\">runs</th></tr></thead><tbody>\n", page->out);
	for (size_t r = 0; r < results->n_rows; r++) {
		const struct bench_row *row = &results->rows[r];

		fputs("<tr>", page->out);
		put_name(page, row->label);
		for (int i = 0; i < BENCH_FIGURES; i++)
			if (results->has[i])
				put_cell(page, r, (enum bench_figure)i);
		fprintf(page->out, "<td>%u", row->finished);
		if (row->n_failures)
			fprintf(page->out, "<small class=\"bad\">%zu failed</small>",
				row->n_failures);
		fputs("</td></tr>\n", page->out);
	}
	fputs("</tbody></table></div>\n", page->out);
}

static void put_matrix(const struct page *page, const struct bench_matrix *m,
		       enum bench_figure figure, const struct parameter *pivot)
{
	fprintf(page->out, "<h2>%s</h2>\n<div class=\"wide\"><table><thead><tr><th></th>",
		bench_figures[figure].words);
	for (size_t i = 0; i < m->n_columns; i++) {
		fputs("<th scope=\"col\">", page->out);
		markup_text(page->out, pivot->name, MAX_COLUMNS);
		fputs("=", page->out);
		markup_text(page->out, pivot->values[i], MAX_COLUMNS);
		fputs("</th>", page->out);
	}
	fputs("</tr></thead><tbody>\n", page->out);
	for (size_t r = 0; r < m->n_rows; r++) {
		fputs("<tr>", page->out);
		put_name(page, m->labels[r]);
		for (size_t i = 0; i < m->n_columns; i++)
			put_cell(page, m->combinations[r * m->n_columns + i], figure);
		fputs("</tr>\n", page->out);
	}
	fputs("</tbody></table></div>\n", page->out);
}

/* ---- The page ---------------------------------------------------------------------------------
 */

static void put_head(const struct page *page)
{
	const struct bench *b = page->results->b;

	fputs(head, page->out);
	fputs("<h1>qprof-bpf bench</h1>\n<p><code>", page->out);
	for (size_t i = 0; i < b->n_command; i++) {
		fputs(i ? " " : "", page->out);
		markup_text(page->out, b->command[i], MAX_COLUMNS);
	}
	fprintf(page->out, "</code></p>\n<p>%u %s of each combination", b->repeats,
		b->repeats == 1 ? "run" : "runs");
	if (b->is_shuffled)
		fprintf(page->out, ", in random order (seed %llu)", (unsigned long long)b->seed);
	if (page->results->phase) {
		fputs("; figures of the phases <code>", page->out);
		markup_text(page->out, page->results->phase, MAX_COLUMNS);
		fputs("</code>", page->out);
	}
	fputs(".</p>\n<p>Medians; a dot for each run; &plusmn; is half of what lies between the "
	      "lowest and the highest run.</p>\n",
	      page->out);
}

static void put_failures(const struct page *page)
{
	const struct bench_results *results = page->results;

	if (!results_failed(results))
		return;
	fputs("<h2>Failed runs</h2>\n<ul>\n", page->out);
	for (size_t i = 0; i < results->n_rows; i++) {
		for (size_t k = 0; k < results->rows[i].n_failures; k++) {
			fputs("<li>", page->out);
			markup_text(page->out, results->rows[i].label, MAX_COLUMNS);
			fprintf(page->out, ", run %u: ", results->rows[i].failures[k].repeat + 1);
			markup_text(page->out, results->rows[i].failures[k].how,
				    MARKUP_MAX_COLUMNS);
			fputs("</li>\n", page->out);
		}
	}
	fputs("</ul>\n", page->out);
}

int bench_html(const struct bench_results *results, const struct bench_view *view, FILE *out)
{
	const struct page page = {results, out};
	struct bench_matrix m = {0};
	int failed = 0;

	put_head(&page);
	if (view->pivot == BENCH_NO_PIVOT)
		put_rows(&page);
	else
		failed = matrix_make(&m, results->b, view->pivot);
	for (int i = 0; view->pivot != BENCH_NO_PIVOT && i < BENCH_FIGURES && !failed; i++)
		if (results->has[i])
			put_matrix(&page, &m, (enum bench_figure)i,
				   &results->b->parameters.items[view->pivot]);
	matrix_free(&m);
	put_failures(&page);
	fputs("</body></html>\n", out);
	return failed;
}
