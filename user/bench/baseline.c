// SPDX-License-Identifier: GPL-2.0-only
#include "bench/baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "bench/random.h"

enum { DRAWS = 10000, SEED = 20120229, MAX_LABEL = 60 };

/* ---- The interval -----------------------------------------------------------------------------
 */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double drawn_mean(const struct bench_values *values, uint64_t *state)
{
	double sum = 0;

	for (size_t i = 0; i < values->n; i++)
		sum += (double)values->items[random_below(state, values->n)];
	return sum / (double)values->n;
}

/* The 97.5th percentile of Student's t. */
static double student(size_t freedom)
{
	static const double exact[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
				       2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145};
	const size_t n = sizeof(exact) / sizeof(*exact);

	/* The first terms of its expansion (Abramowitz and Stegun 26.7.5), right to 0.001 there. */
	return freedom <= n ? exact[freedom - 1]
			    : 1.960 + 2.372 / (double)freedom + 2.823 / (double)(freedom * freedom);
}

/* The share of a bootstrap's draws that lies beyond each bound. */
static double tail(size_t n)
{
	const double z = sqrt((double)n / (double)(n - 1)) * student(n - 1);

	return erfc(z / sqrt(2.0)) / 2;
}

struct bench_change bench_change(const struct bench_values *old, const struct bench_values *new)
{
	const size_t fewer = old->n < new->n ? old->n : new->n;
	struct bench_change change = {.is_known = fewer > 0, .old = old->mean, .new = new->mean};
	uint64_t state = SEED;
	double *draws;
	size_t cut;

	if (fewer < BASELINE_MIN_RUNS)
		return change;
	draws = calloc(DRAWS, sizeof(*draws));
	if (!draws)
		return change;
	for (size_t i = 0; i < DRAWS; i++) {
		const double before = drawn_mean(old, &state);

		draws[i] = drawn_mean(new, &state) - before;
	}
	qsort(draws, DRAWS, sizeof(*draws), by_size);
	cut = (size_t)(tail(fewer) * DRAWS);
	change.low = draws[cut];
	change.high = draws[DRAWS - 1 - cut];
	change.has_bounds = true;
	free(draws);
	return change;
}

/* ---- Gates ------------------------------------------------------------------------------------
 */

enum gate_answer gate_judge(const struct bench_gate *gate, const struct bench_change *change)
{
	const double limit =
		gate->is_percent ? change->old * gate->percent / 100 : (double)gate->amount;

	if (!change->has_bounds)
		return GATE_UNKNOWN;
	return change->low > limit ? GATE_PASSED : GATE_HOLDS;
}

/* ---- For people -------------------------------------------------------------------------------
 */

static const struct bench_row *find_row(const struct bench_results *in, const struct bench *of,
					size_t combination)
{
	const struct parameters *p = &of->parameters, *q = &in->b->parameters;

	if (p->n != q->n)
		return NULL;
	for (size_t r = 0; r < in->n_rows; r++) {
		size_t i = 0;

		while (i < p->n && !strcmp(p->items[i].name, q->items[i].name) &&
		       !strcmp(parameters_value(p, combination, i),
			       parameters_value(q, in->rows[r].combination, i)))
			i++;
		if (i == p->n)
			return &in->rows[r];
	}
	return NULL;
}

static char *amount(char *out, enum quantity_unit unit, double value)
{
	const uint64_t whole = value > 0 ? (uint64_t)(value + 0.5) : 0;

	return unit == QUANTITY_BYTES ? units_bytes_short(out, whole)
				      : units_time_for_people(out, whole);
}

/* In percent of old, where there is something to take it of. */
static void percent(char *out, size_t size, double part, double whole)
{
	if (whole > 0)
		snprintf(out, size, "%+.1f%%", 100 * part / whole);
	else
		snprintf(out, size, "-");
}

static bool is_change(const struct bench_change *change)
{
	const double size = fabs(change->new - change->old);

	return change->has_bounds && (change->low > 0 || change->high < 0) &&
	       size >= change->old / 100;
}

static void fill_line(struct table_line *line, const struct bench_figure_info *info,
		      const struct bench_change *change)
{
	char low[UNITS_TEXT_MAX], high[UNITS_TEXT_MAX];

	*line = (struct table_line){.indent = 1};
	snprintf(line->name, sizeof(line->name), "%s", info->words);
	amount(line->cells[0], info->unit, change->old);
	amount(line->cells[1], info->unit, change->new);
	percent(line->cells[2], sizeof(line->cells[2]), change->new - change->old, change->old);
	percent(low, sizeof(low), change->low, change->old);
	percent(high, sizeof(high), change->high, change->old);
	if (change->has_bounds)
		snprintf(line->cells[3], sizeof(line->cells[3]), "%.12s to %.12s", low, high);
	else
		snprintf(line->cells[3], sizeof(line->cells[3]), "too few runs");
}

/* Judges a row's figures, and writes those that changed. Returns the worst answer. */
static enum gate_answer judge_row(const struct bench_baseline *b, const struct bench_row *old,
				  const struct bench_row *new, const struct table *table,
				  size_t *unchanged)
{
	enum gate_answer worst = GATE_HOLDS;
	bool is_named = false;

	for (int i = 0; i < BENCH_FIGURES; i++) {
		const struct bench_change change = bench_change(&old->figures[i], &new->figures[i]);
		enum gate_answer answer = GATE_HOLDS;
		const struct bench_gate *passed = NULL;
		struct table_line line;

		for (size_t g = 0; g < b->n_gates; g++) {
			if ((int)b->gates[g].figure != i)
				continue;
			answer = gate_judge(&b->gates[g], &change);
			if (answer == GATE_PASSED || worst == GATE_HOLDS)
				worst = answer;
			if (answer == GATE_PASSED)
				passed = &b->gates[g];
		}
		if (!change.is_known)
			continue;
		if (!b->all && !passed && answer != GATE_UNKNOWN && !is_change(&change)) {
			++*unchanged;
			continue;
		}
		if (!is_named) {
			table_tone(table, BOLD);
			fprintf(table->out, "%*s", INDENT, "");
			table_name(table, new->label, MAX_LABEL, false);
			fputc('\n', table->out);
			table_tone(table, PLAIN);
		}
		is_named = true;
		fill_line(&line, &bench_figures[i], &change);
		fprintf(table->out, "%*s%-22s%9s%10s%9s   %s%s%s\n", 2 * INDENT, "", line.name,
			line.cells[0], line.cells[1], line.cells[2], line.cells[3],
			passed ? "  PASSED: " : "", passed ? passed->text : "");
	}
	return worst;
}

int baseline_write(const struct bench_baseline *b, FILE *out)
{
	static const int statuses[] = {[GATE_HOLDS] = 0, [GATE_PASSED] = 1, [GATE_UNKNOWN] = 3};
	struct table table = {.out = out, .width = table_width(b->width, MAX_WIDTH)};
	enum gate_answer worst = GATE_HOLDS, answer;
	size_t unchanged = 0, unmatched = 0;
	char text[UNITS_TEXT_MAX];

	fprintf(out, "\n%*s%-24s%9s%10s%9s   %s\n", INDENT, "", "AGAINST THE BASELINE", "OLD",
		"NEW", "CHANGE", "95% INTERVAL");
	for (size_t i = 0; i < b->new->n_rows; i++) {
		const struct bench_row *new = &b->new->rows[i];
		const struct bench_row *old = find_row(b->old, b->new->b, new->combination);

		if (!old) {
			unmatched++;
			continue;
		}
		answer = judge_row(b, old, new, &table, &unchanged);
		if (answer == GATE_PASSED || worst == GATE_HOLDS)
			worst = answer;
	}
	if (unchanged)
		fprintf(out, "%*s%s did not change: --all tells them.\n", INDENT, "",
			units_counted(text, sizeof(text), unchanged, "figure(s)"));
	if (unmatched)
		fprintf(out, "%*s%s not in the baseline.\n", INDENT, "",
			units_counted(text, sizeof(text), unmatched, "combination(s)"));
	if (unmatched == b->new->n_rows && b->n_gates &&worst == GATE_HOLDS)
		worst = GATE_UNKNOWN;
	if (worst == GATE_UNKNOWN)
		fprintf(out, "%*sToo few runs to judge: -r %d or more on both sides.\n", INDENT, "",
			BASELINE_MIN_RUNS);
	return statuses[worst];
}
