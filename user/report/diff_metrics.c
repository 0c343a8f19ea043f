/* SPDX-License-Identifier: GPL-2.0-only */
/* What programs reported, in a comparison: judged by budgets, and written as text or JSON. */
#include "report/diff.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "report/compare_metrics.h"
#include "report/metrics.h"

enum { MAX_NAME = 200 }; /* columns */

/* A NaN holds no budget. */
static bool passes(const struct diff_budget *budget, const struct program_values *new)
{
	return new->n && !(new->median <= budget->most);
}

int diff_judge_program(struct diff *d, const struct diff_budget *budget)
{
	const struct program_metric *metric =
		program_metric_find(comparison_metrics(d->c), budget->program);
	struct program_values new = {0};

	if (metric)
		new = program_metric_values(metric, COMPARE_NEW);
	if (new.n && !passes(budget, &new))
		return 0;
	return diff_add_breach(d, &(struct diff_breach){.limit = budget->text,
							.program = budget->program,
							.is_missing = !new.n,
							.program_new = new.median,
							.program_most = budget->most});
}

static bool has_breach(const struct diff *d, const struct program_metric *metric)
{
	const struct program_values new = program_metric_values(metric, COMPARE_NEW);

	for (size_t i = 0; i < d->n_budgets; i++) {
		const struct diff_budget *budget = &d->budgets[i];

		if (budget->program && !strcmp(budget->program, program_metric_name(metric)) &&
		    passes(budget, &new))
			return true;
	}
	return false;
}

/* ---- Text ---- */

static char *number_text(char *out, double value)
{
	return metric_short(out, &(struct profile_metric){.kind = PROFILE_DOUBLE, .d = value});
}

static void put_change(FILE *out, double old, double new)
{
	char change[UNITS_TEXT_MAX], percent[UNITS_TEXT_MAX];

	number_text(change + 1, fabs(new - old));
	change[0] = new < old ? '-' : '+';
	fprintf(out, "%*s%*s", DIFF_VALUE + 1, change, DIFF_VALUE, diff_percent(percent, old, new));
}

/* A name that is wider than the titles of lines has a line of its own. */
static void put_metric(const struct diff *d, FILE *out, const struct program_metric *metric)
{
	const struct program_values old = program_metric_values(metric, COMPARE_OLD);
	const struct program_values new = program_metric_values(metric, COMPARE_NEW);
	char name[MAX_NAME * TEXT_TERMINAL_GROWTH + 1];
	char before[UNITS_TEXT_MAX] = "-", after[UNITS_TEXT_MAX] = "-";
	const unsigned int columns =
		text_for_terminal(name, sizeof(name), program_metric_name(metric),
				  d->width - 2 < MAX_NAME ? d->width - 2 : MAX_NAME);

	if (old.n)
		number_text(before, old.median);
	if (new.n)
		number_text(after, new.median);
	if (columns <= DIFF_TITLE)
		fprintf(out, "  %s%*s", name, DIFF_TITLE - (int)columns, "");
	else
		fprintf(out, "  %s\n  %*s", name, DIFF_TITLE, "");
	fprintf(out, "%*s%*s", DIFF_VALUE, before, DIFF_VALUE, after);
	if (old.n && new.n && isfinite(old.median) && isfinite(new.median))
		put_change(out, old.median, new.median);
	if (has_breach(d, metric))
		fputs(" !", out);
	else if (program_metric_is_within_spread(metric))
		fputs(" ~", out);
	fputc('\n', out);
}

size_t diff_text_program(const struct diff *d, FILE *out)
{
	const struct program_metrics *metrics = comparison_metrics(d->c);
	size_t shown = 0;

	for (size_t i = 0; i < metrics->n; i++) {
		const struct program_metric *metric = metrics->items[i];

		if (!d->all && !program_metric_is_change(metric) && !has_breach(d, metric))
			continue;
		if (!shown++)
			diff_title(d, out, "Metrics of the program");
		put_metric(d, out, metric);
	}
	return metrics->n - shown;
}

void diff_text_program_breach(const struct diff_breach *breach, FILE *out)
{
	char name[MAX_NAME * TEXT_TERMINAL_GROWTH + 1];
	char new[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];

	if (breach->is_missing) {
		fputs(": NEW reports no metric of that name, and diff has none\n", out);
		return;
	}
	text_for_terminal(name, sizeof(name), breach->program, MAX_NAME);
	fprintf(out, ": %s is %s, at most %s\n", name, number_text(new, breach->program_new),
		number_text(most, breach->program_most));
}

/* ---- JSON ---- */

static void put_values(struct json_writer *j, const char *key, const struct program_values *values)
{
	json_key(j, key);
	if (!values->n) {
		json_plain(j, "null");
		return;
	}
	json_compact(j);
	json_object(j);
	json_key(j, "median");
	json_double(j, values->median);
	json_key(j, "lowest");
	json_double(j, values->lowest);
	json_key(j, "highest");
	json_double(j, values->highest);
	json_object_end(j);
}

void diff_json_program(const struct diff *d, struct json_writer *j)
{
	const struct program_metrics *metrics = comparison_metrics(d->c);

	json_key(j, "metrics");
	json_array(j);
	for (size_t i = 0; i < metrics->n; i++) {
		const struct program_metric *metric = metrics->items[i];
		const struct program_values old = program_metric_values(metric, COMPARE_OLD);
		const struct program_values new = program_metric_values(metric, COMPARE_NEW);

		json_object(j);
		json_member_text(j, "name", program_metric_name(metric));
		put_values(j, "old", &old);
		put_values(j, "new", &new);
		json_member_bool(j, "within_spread", program_metric_is_within_spread(metric));
		json_member_bool(j, "breaks_limit", has_breach(d, metric));
		json_object_end(j);
	}
	json_array_end(j);
}
