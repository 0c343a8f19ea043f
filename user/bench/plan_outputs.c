// SPDX-License-Identifier: GPL-2.0-only
/* The plan for people, and for programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/table.h"
#include "bench/plan.h"

enum { MAX_NAME = 40, LAW_TEXT_MAX = 128 };

static uint64_t whole(double value)
{
	return value > 0 ? (uint64_t)(value + 0.5) : 0;
}

static char *amount(char *out, enum quantity_unit unit, double value)
{
	return unit == QUANTITY_BYTES ? units_bytes_short(out, whole(value))
				      : units_time_for_people(out, whole(value));
}

/* The farther bound, in percent. */
static double uncertainty(const struct forecast *f)
{
	return f->value > 0 ? 100 * fmax(f->high - f->value, f->value - f->low) / f->value : 0;
}

static const char *why_unknown(enum forecast_state state)
{
	return state == FORECAST_BAD_FIT ? "no law" : "few sizes";
}

/* "1.2G + 1.9G x": by which law it was told. */
static char *law(char *out, const struct forecast *f, enum quantity_unit unit)
{
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX];

	if (f->state != FORECAST_KNOWN) {
		*out = '\0';
		return out;
	}
	amount(a, unit, fabs(f->law == LAW_POWER ? exp(f->a) : f->a));
	amount(b, unit, fabs(f->b));
	switch (f->law) {
	case LAW_LINEAR:
		if (f->b == 0)
			snprintf(out, LAW_TEXT_MAX, "%s", a);
		else
			snprintf(out, LAW_TEXT_MAX, "%s%s %c %s x", f->a < 0 ? "-" : "", a,
				 f->b < 0 ? '-' : '+', b);
		break;
	case LAW_SQUARE:
		snprintf(out, LAW_TEXT_MAX, "%s%s %c %s x^2", f->a < 0 ? "-" : "", a,
			 f->b < 0 ? '-' : '+', b);
		break;
	case LAW_MIXED:
		snprintf(out, LAW_TEXT_MAX, "%s%s x %c %s x^2", f->a < 0 ? "-" : "", a,
			 f->b < 0 ? '-' : '+', b);
		break;
	case LAW_FULL:
		snprintf(out, LAW_TEXT_MAX, "%s%s %c %s x %c %s x^2", f->a < 0 ? "-" : "", a,
			 f->b < 0 ? '-' : '+', b, f->c < 0 ? '-' : '+',
			 amount(c, unit, fabs(f->c)));
		break;
	default:
		snprintf(out, LAW_TEXT_MAX, "%s x^%.2f", a, f->b);
	}
	return out;
}

/* ---- Sentences --------------------------------------------------------------------------------
 */

/* "96.1 GiB (92.3 to 99.9)" */
static void put_amount(FILE *out, const struct forecast *f)
{
	char value[UNITS_TEXT_MAX], low[UNITS_TEXT_MAX], high[UNITS_TEXT_MAX];

	fprintf(out, "%s (%s to %s)", units_bytes_for_people(value, whole(f->value)),
		units_bytes_short(low, whole(f->low)), units_bytes_short(high, whole(f->high)));
}

static const struct plan_phase *neediest(const struct plan *plan)
{
	const struct plan_phase *found = NULL;

	for (size_t i = 0; i < plan->n_phases; i++) {
		const struct forecast *f = &plan->phases[i].forecasts[BENCH_NEED];

		if (f->state == FORECAST_KNOWN &&
		    (!found || f->value > found->forecasts[BENCH_NEED].value))
			found = &plan->phases[i];
	}
	return found;
}

/* The phase that will have the peak, and those that it may be as well. */
static void put_neediest(const struct plan *plan, FILE *out)
{
	const struct plan_phase *first = neediest(plan);
	char name[MAX_NAME * TEXT_TERMINAL_GROWTH + 1];
	size_t others = 0;

	if (!first)
		return;
	text_cut_middle(name, first->name, MAX_NAME);
	fprintf(out, ", in '%s'", name);
	for (size_t i = 0; i < plan->n_phases && others < 3; i++) {
		const struct plan_phase *phase = &plan->phases[i];

		if (phase == first || phase->forecasts[BENCH_NEED].state != FORECAST_KNOWN ||
		    phase->forecasts[BENCH_NEED].high < first->forecasts[BENCH_NEED].low)
			continue;
		text_cut_middle(name, phase->name, MAX_NAME);
		fprintf(out, "%s'%s'", others++ ? ", " : ", or perhaps in ", name);
	}
}

static void put_fits(const struct plan *plan, uint64_t bytes, FILE *out)
{
	static const char *const words[] = {[PLAN_FITS] = "It fits into %s",
					    [PLAN_DOES_NOT] = "It does not fit into %s",
					    [PLAN_UNKNOWN] = "It may fit into %s, or not"};
	char text[UNITS_TEXT_MAX], name[MAX_NAME * TEXT_TERMINAL_GROWTH + 1];
	const struct plan_phase *first;
	const enum plan_answer answer = plan_fits(plan, bytes, &first);

	if (plan->run.forecasts[BENCH_NEED].state != FORECAST_KNOWN)
		return;
	fputs("  ", out);
	fprintf(out, words[answer], units_bytes_for_people(text, bytes));
	if (first) {
		text_cut_middle(name, first->name, MAX_NAME);
		fprintf(out, ": the first phase that %s is '%s'",
			answer == PLAN_DOES_NOT ? "needs more" : "might need more", name);
	}
	fputs(".\n", out);
}

static void put_head(const struct plan *plan, const struct plan_view *view, FILE *out)
{
	const struct forecast *needs = &plan->run.forecasts[BENCH_NEED];
	char profiles[UNITS_TEXT_MAX], name[MAX_NAME * TEXT_TERMINAL_GROWTH + 1];

	fprintf(out, "  %s = %g, from %s of %g to %g: ", view->unit, plan->at,
		units_counted(profiles, sizeof(profiles), plan->n_profiles, "profile(s)"),
		plan->lowest, plan->highest);
	switch (needs->state) {
	case FORECAST_KNOWN:
		fputs("needs ", out);
		put_amount(out, needs);
		put_neediest(plan, out);
		fputs(".\n", out);
		break;
	case FORECAST_BAD_FIT:
		if (plan->lawless) {
			text_cut_middle(name, plan->lawless->name, MAX_NAME);
			fprintf(out, "'%s' follows no law at these sizes, so nobody can tell.\n",
				name);
			break;
		}
		fputs("no law fits what the whole needs at these sizes, so nobody can tell.\n",
		      out);
		break;
	default:
		fprintf(out, "profiles of %d sizes at least are needed.\n", FORECAST_MIN_SIZES);
	}
	for (size_t i = 0; i < view->n_amounts; i++)
		put_fits(plan, view->amounts[i], out);
}

/* ---- The table --------------------------------------------------------------------------------
 */

/* A figure that no profile has has no column. */
static bool is_told(const struct plan *plan, enum bench_figure figure)
{
	return plan->run.n[figure] > 0;
}

static void fill_line(const struct plan *plan, const struct plan_phase *phase,
		      struct table_line *line)
{
	unsigned int n = 0;
	char text[UNITS_TEXT_MAX], by[LAW_TEXT_MAX];

	*line = (struct table_line){.indent = phase->name ? 1 : 0};
	snprintf(line->name, sizeof(line->name), "%s", phase->name ? phase->name : "(the run)");
	for (int i = 0; i < BENCH_FIGURES; i++) {
		const struct forecast *f = &phase->forecasts[i];

		if (!is_told(plan, (enum bench_figure)i))
			continue;
		if (f->state != FORECAST_KNOWN)
			snprintf(line->cells[n], sizeof(line->cells[n]), "%s",
				 why_unknown(f->state));
		else
			snprintf(line->cells[n], sizeof(line->cells[n]),
				 uncertainty(f) < 0.5 ? "%s" : "%s +-%.0f%%",
				 amount(text, bench_figures[i].unit, f->value), uncertainty(f));
		n++;
	}
	snprintf(line->cells[n], sizeof(line->cells[n]), "%s",
		 phase->name ? law(by, &phase->forecasts[BENCH_NEED], QUANTITY_BYTES) : "");
}

static void put_table(const struct plan *plan, const struct table *table)
{
	static const enum bench_figure leaving[] = {BENCH_WRITE, BENCH_READ, BENCH_CPU};
	unsigned int leaves[MAX_CELLS], column[BENCH_FIGURES];
	const char *titles[MAX_CELLS];
	struct table_columns columns = {.titles = titles, .leaving = leaves};
	struct table_line line;

	for (int i = 0; i < BENCH_FIGURES; i++) {
		column[i] = columns.n;
		if (is_told(plan, (enum bench_figure)i))
			titles[columns.n++] = bench_figures[i].title;
	}
	titles[columns.n++] = "NEEDS BY";
	for (size_t i = 0; i < sizeof(leaving) / sizeof(*leaving); i++)
		if (is_told(plan, leaving[i]))
			leaves[columns.n_leaving++] = column[leaving[i]];
	leaves[columns.n_leaving++] = columns.n - 1;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i <= plan->n_phases; i++) {
			fill_line(plan, i ? &plan->phases[i - 1] : &plan->run, &line);
			if (pass)
				table_settled(table, &columns, &line);
			else
				table_measure(&columns, &line);
		}
		if (!pass)
			table_settle(table, &columns, "PHASE");
	}
}

static int status_of(const struct plan *plan, const struct plan_view *view)
{
	int status =
		plan->run.forecasts[BENCH_NEED].state == FORECAST_KNOWN ? PLAN_FITS : PLAN_UNKNOWN;
	const struct plan_phase *first;

	for (size_t i = 0; i < view->n_amounts; i++) {
		const enum plan_answer answer = plan_fits(plan, view->amounts[i], &first);

		if (answer == PLAN_DOES_NOT || status == PLAN_FITS)
			status = answer;
	}
	return status;
}

int plan_text(const struct plan *plan, const struct plan_view *view, FILE *out)
{
	struct table table = {.out = out,
			      .width = table_width(view->width, MAX_WIDTH),
			      .min_name = MIN_NAME,
			      .max_name = MAX_NAME,
			      .indent_titles = INDENT,
			      .colour = view->colour};

	put_head(plan, view, out);
	fputc('\n', out);
	put_table(plan, &table);
	fprintf(out, "\n  +- holds in 9 of 10 cases, if the program goes on as it did; x is %s.\n",
		view->unit);
	return status_of(plan, view);
}

/* ---- JSON -------------------------------------------------------------------------------------
 */

static void json_amount(struct json_writer *j, const char *key, enum quantity_unit unit,
			double value)
{
	char text[UNITS_TEXT_MAX];

	json_key(j, key);
	json_plain(j, quantity_text(text, unit, whole(value)));
}

static void json_phase(struct json_writer *j, const struct plan_phase *phase)
{
	static const char *const laws[] = {[LAW_LINEAR] = "a + b x",
					   [LAW_SQUARE] = "a + b x^2",
					   [LAW_MIXED] = "a x + b x^2",
					   [LAW_POWER] = "exp(a) x^b",
					   [LAW_FULL] = "a + b x + c x^2"};
	char key[64];

	json_object(j);
	if (phase->name)
		json_member_text(j, "phase", phase->name);
	for (int i = 0; i < BENCH_FIGURES; i++) {
		const struct bench_figure_info *info = &bench_figures[i];
		const struct forecast *f = &phase->forecasts[i];

		if (!phase->n[i])
			continue;
		snprintf(key, sizeof(key), "%s%s", info->key,
			 info->unit == QUANTITY_BYTES ? "_mb" : "_secs");
		json_key(j, key);
		json_compact(j);
		json_object(j);
		if (f->state == FORECAST_KNOWN) {
			json_amount(j, "value", info->unit, f->value);
			json_amount(j, "low", info->unit, f->low);
			json_amount(j, "high", info->unit, f->high);
			json_member_text(j, "law", laws[f->law]);
			json_key(j, "a");
			json_double(j, f->a);
			json_key(j, "b");
			json_double(j, f->b);
			json_key(j, "c");
			json_double(j, f->c);
		} else {
			json_member_text(j, "unknown",
					 f->state == FORECAST_BAD_FIT ? "bad_fit"
								      : "too_few_sizes");
		}
		json_object_end(j);
	}
	json_object_end(j);
}

int plan_json(const struct plan *plan, const struct plan_view *view, FILE *out)
{
	static const char *const answers[] = {
		[PLAN_FITS] = "yes", [PLAN_DOES_NOT] = "no", [PLAN_UNKNOWN] = "unknown"};
	struct json_writer j = {.out = out, .pretty = true};
	const struct plan_phase *first;

	json_object(&j);
	json_member_text(&j, "unit", view->unit);
	json_key(&j, "at");
	json_double(&j, plan->at);
	json_member_u64(&j, "profiles", plan->n_profiles);
	json_key(&j, "run");
	json_phase(&j, &plan->run);
	json_key(&j, "phases");
	json_array(&j);
	for (size_t i = 0; i < plan->n_phases; i++)
		json_phase(&j, &plan->phases[i]);
	json_array_end(&j);
	json_key(&j, "fits");
	json_array(&j);
	for (size_t i = 0; i < view->n_amounts; i++) {
		json_object(&j);
		json_member_u64(&j, "bytes", view->amounts[i]);
		json_member_text(&j, "answer", answers[plan_fits(plan, view->amounts[i], &first)]);
		json_member_text(&j, "first_phase", first ? first->name : NULL);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	return status_of(plan, view);
}
