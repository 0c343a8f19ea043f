/* SPDX-License-Identifier: GPL-2.0-only */
/* What the program reported of itself: a line for each name, then what it says of the names. */
#include <stdlib.h>

#include "report/metrics.h"
#include "report/text_report.h"

static void put_metric(const struct text_report *t, const struct reported *metric)
{
	struct table_line line = {0};

	snprintf(line.name, sizeof(line.name), "%s", metric->name);
	metric_short(line.cells[0], &metric->last);
	if (metric->of_run)
		snprintf(line.cells[1], UNITS_TEXT_MAX, "run");
	else
		units_time_for_people(line.cells[1], metric->last_ns);
	units_count(line.cells[2], metric->count);
	metric_short(line.cells[3], &metric->lowest);
	metric_short(line.cells[4], &metric->highest);
	table_line(&t->table, &line, 5);
}

int text_metrics(const struct text_report *t)
{
	static const char *const titles[] = {"LAST", "AT", "TIMES", "LOWEST", "HIGHEST"};
	const struct recording *r = t->r;
	size_t n;
	struct reported *metrics = reported_metrics(r, &n);

	if (!metrics)
		return -1;
	if (n || r->n_definitions) {
		fputc('\n', t->table.out);
		table_titles(&t->table, "METRICS OF THE PROGRAM", titles, 5);
	}
	for (size_t i = 0; i < n && i < t->top; i++)
		put_metric(t, &metrics[i]);
	text_more(t, n, "more metric(s)");
	for (size_t i = 0; i < r->n_definitions && i < t->top; i++)
		text_wrapped(t, "  # ", r->definitions[i]);
	text_more(t, r->n_definitions, "more definition(s)");
	free(metrics);
	return 0;
}
