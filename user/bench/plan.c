// SPDX-License-Identifier: GPL-2.0-only
#include "bench/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/ending.h"
#include "model/trends.h"

/* ---- Points -----------------------------------------------------------------------------------
 */

static int add_point(struct plan_phase *phase, enum bench_figure figure, double x, double y)
{
	struct forecast_point *more =
		reallocarray(phase->points[figure], phase->n[figure] + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	phase->points[figure] = more;
	more[phase->n[figure]++] = (struct forecast_point){x, y};
	return 0;
}

/* What the phases of one group come to in one profile. */
struct sum {
	struct plan_phase *into;
	double values[BENCH_FIGURES];
	bool has[BENCH_FIGURES];
};

static void most(struct sum *sum, enum bench_figure figure, uint64_t value)
{
	if ((double)value > sum->values[figure])
		sum->values[figure] = (double)value;
	sum->has[figure] = true;
}

static void add(struct sum *sum, enum bench_figure figure, uint64_t value)
{
	sum->values[figure] += (double)value;
	sum->has[figure] = true;
}

static void add_usage(struct sum *sum, const struct profile_usage *usage, uint64_t ns)
{
	add(sum, BENCH_READ, usage->io_read);
	add(sum, BENCH_WRITE, usage->io_write);
	add(sum, BENCH_CPU, usage->cpu_ns);
	add(sum, BENCH_TIME, ns);
}

static void add_need(struct sum *sum, const struct recording_needs *needs, uint64_t from,
		     uint64_t to)
{
	struct recording_need need;

	if (recording_need(needs, from, to, &need))
		most(sum, BENCH_NEED, need.most);
}

static int settle(const struct sum *sum, double size)
{
	int failed = 0;

	for (int i = 0; i < BENCH_FIGURES && !failed; i++)
		if (sum->has[i])
			failed = add_point(sum->into, (enum bench_figure)i, size, sum->values[i]);
	return failed;
}

/* ---- Phases -----------------------------------------------------------------------------------
 */

static bool counts(const struct recording_phase *phase)
{
	return phase->closed && phase->shown && phase->shown[0];
}

/* Returns the index of the group, or n_phases: out of memory, or too many. */
static size_t find_group(struct plan *plan, const struct recording_phase *phase)
{
	char group[TREND_NAME_MAX];
	struct plan_phase *more, *found;
	size_t i = 0;

	trend_pattern(group, phase->shown, strlen(phase->shown));
	while (i < plan->n_phases && strcmp(plan->phases[i].group, group))
		i++;
	if (i < plan->n_phases) {
		found = &plan->phases[i];
		if (strcmp(found->name, phase->shown) && strcmp(found->name, group)) {
			free(found->name);
			found->name = strdup(group);
		}
		return found->name ? i : plan->n_phases;
	}
	if (i == PLAN_MAX_PHASES)
		return i;
	more = reallocarray(plan->phases, i + 1, sizeof(*more));
	if (!more)
		return i;
	plan->phases = more;
	more[i] = (struct plan_phase){.name = strdup(phase->shown), .group = strdup(group)};
	plan->n_phases++;
	return more[i].name && more[i].group ? i : plan->n_phases;
}

static int add_phases(struct plan *plan, const struct recording *r,
		      const struct recording_needs *needs, double size)
{
	struct sum *sums = calloc(PLAN_MAX_PHASES, sizeof(*sums));
	int failed = sums ? 0 : -ENOMEM;

	for (size_t i = 0; i < r->n_phases && !failed; i++) {
		const struct recording_phase *phase = &r->phases[i];
		struct plan_phase *into;
		struct sum *sum;
		size_t at;

		if (!counts(phase))
			continue;
		at = find_group(plan, phase);
		if (at == PLAN_MAX_PHASES)
			continue;
		if (at == plan->n_phases) {
			failed = -ENOMEM;
			break;
		}
		into = &plan->phases[at];
		if (r->totals.duration_ns)
			into->begin += (double)phase->start_ns / (double)r->totals.duration_ns;
		into->n_begins++;
		sum = &sums[at];
		most(sum, BENCH_PEAK, phase->peak_rss);
		if (phase->peak_gpu)
			most(sum, BENCH_GPU, phase->peak_gpu);
		add_need(sum, needs, phase->start_ns, phase->start_ns + phase->duration_ns);
		add_usage(sum, &phase->usage, phase->duration_ns);
	}
	for (size_t i = 0; i < plan->n_phases && !failed; i++) {
		sums[i].into = &plan->phases[i];
		failed = settle(&sums[i], size);
	}
	free(sums);
	return failed;
}

static int add_run(struct plan *plan, const struct recording *r,
		   const struct recording_needs *needs, double size)
{
	struct sum sum = {.into = &plan->run};

	most(&sum, BENCH_PEAK, r->totals.peak_rss);
	if (r->totals.peak_gpu)
		most(&sum, BENCH_GPU, r->totals.peak_gpu);
	add_need(&sum, needs, 0, UINT64_MAX);
	add_usage(&sum, &r->totals.usage, r->totals.duration_ns);
	return settle(&sum, size);
}

int plan_add(struct plan *plan, const struct recording *r, const char *name, double size,
	     struct error *err)
{
	struct recording_needs *needs;
	struct ending ending;
	int failed;

	recording_ending(r, &ending);
	if (ending.is_bad || r->partial)
		return error_set(err,
				 "%s: this run did not end well: what it would have taken is not "
				 "known",
				 name);
	if (plan->n_profiles == PLAN_MAX_PROFILES)
		return error_set(err, "more than %d profiles", PLAN_MAX_PROFILES);
	needs = recording_needs_new(r);
	failed = needs ? add_run(plan, r, needs, size) : -ENOMEM;
	if (!failed)
		failed = add_phases(plan, r, needs, size);
	recording_needs_free(needs);
	if (!plan->n_profiles || size < plan->lowest)
		plan->lowest = size;
	if (size > plan->highest)
		plan->highest = size;
	plan->n_profiles++;
	return failed ? error_set(err, "not enough memory for '%s'", name) : 0;
}

static void free_phase(struct plan_phase *phase)
{
	for (int i = 0; i < BENCH_FIGURES; i++)
		free(phase->points[i]);
	free(phase->name);
	free(phase->group);
}

void plan_free(struct plan *plan)
{
	for (size_t i = 0; i < plan->n_phases; i++)
		free_phase(&plan->phases[i]);
	free_phase(&plan->run);
	free(plan->phases);
	*plan = (struct plan){0};
}

/* ---- Forecasts --------------------------------------------------------------------------------
 */

static int by_begin(const void *a, const void *b)
{
	const struct plan_phase *p = a, *q = b;
	const double x = p->begin / (double)p->n_begins, y = q->begin / (double)q->n_begins;

	return (x > y) - (x < y);
}

/* A phase that never had so much of the run's highest is left out if it follows no law. */
static const double of_weight = 0.25;
/* Of what the run had, its phases have all but so much. */
static const double all_but = 0.01;

static double highest_of(const struct plan_phase *phase, enum bench_figure figure)
{
	double highest = 0;

	for (size_t i = 0; i < phase->n[figure]; i++)
		if (phase->points[figure][i].y > highest)
			highest = phase->points[figure][i].y;
	return highest;
}

/* Whether some phase was as high as the run itself at each size. forecast_make() left one point a
 * size, in order. */
static bool phases_tell_all(const struct plan *plan, enum bench_figure figure)
{
	const struct plan_phase *run = &plan->run;

	for (size_t i = 0; i < run->n[figure]; i++) {
		double highest = 0;

		for (size_t k = 0; k < plan->n_phases; k++) {
			const struct plan_phase *phase = &plan->phases[k];

			for (size_t m = 0; m < phase->n[figure]; m++)
				if (phase->points[figure][m].x == run->points[figure][i].x &&
				    phase->points[figure][m].y > highest)
					highest = phase->points[figure][m].y;
		}
		if (highest < (1 - all_but) * run->points[figure][i].y)
			return false;
	}
	return true;
}

static void raise_to_phase(struct forecast *run, const struct forecast *phase)
{
	if (phase->value > run->value) {
		const double low = run->low, high = run->high;

		*run = *phase;
		run->low = low > run->low ? low : run->low;
		run->high = high > run->high ? high : run->high;
	} else {
		run->low = phase->low > run->low ? phase->low : run->low;
		run->high = phase->high > run->high ? phase->high : run->high;
	}
}

static void make_whole(struct plan *plan, enum bench_figure figure)
{
	struct forecast *run = &plan->run.forecasts[figure];
	const double weight = of_weight * highest_of(&plan->run, figure);

	if (run->state == FORECAST_TOO_FEW || !plan->n_phases)
		return;
	if (phases_tell_all(plan, figure))
		*run = (struct forecast){.state = FORECAST_KNOWN};
	else if (run->state != FORECAST_KNOWN)
		return;
	for (size_t i = 0; i < plan->n_phases; i++) {
		const struct plan_phase *phase = &plan->phases[i];

		if (phase->forecasts[figure].state == FORECAST_KNOWN) {
			raise_to_phase(run, &phase->forecasts[figure]);
		} else if (phase->n[figure] && highest_of(phase, figure) >= weight) {
			run->state = FORECAST_BAD_FIT;
			plan->lawless = phase;
			return;
		}
	}
}

/* Each has one point a size from here on. */
static void make_phase(struct plan_phase *phase, double at)
{
	for (int i = 0; i < BENCH_FIGURES; i++) {
		phase->forecasts[i] = forecast_make(phase->points[i], phase->n[i], at);
		phase->n[i] = forecast_merge(phase->points[i], phase->n[i]);
	}
}

void plan_make(struct plan *plan, double at)
{
	static const enum bench_figure highest[] = {BENCH_PEAK, BENCH_NEED, BENCH_GPU};

	plan->at = at;
	make_phase(&plan->run, at);
	for (size_t i = 0; i < plan->n_phases; i++)
		make_phase(&plan->phases[i], at);
	if (plan->n_phases)
		qsort(plan->phases, plan->n_phases, sizeof(*plan->phases), by_begin);
	for (size_t i = 0; i < sizeof(highest) / sizeof(*highest); i++)
		make_whole(plan, highest[i]);
}

enum plan_answer plan_fits(const struct plan *plan, uint64_t amount,
			   const struct plan_phase **first)
{
	const struct forecast *whole = &plan->run.forecasts[BENCH_NEED];
	enum plan_answer answer = PLAN_FITS;

	*first = NULL;
	if (whole->state != FORECAST_KNOWN)
		return PLAN_UNKNOWN;
	if (whole->low > (double)amount)
		answer = PLAN_DOES_NOT;
	else if (whole->high > (double)amount)
		answer = PLAN_UNKNOWN;
	for (size_t i = 0; answer != PLAN_FITS && i < plan->n_phases && !*first; i++) {
		const struct forecast *f = &plan->phases[i].forecasts[BENCH_NEED];

		if (f->state == FORECAST_KNOWN &&
		    (answer == PLAN_DOES_NOT ? f->value : f->high) > (double)amount)
			*first = &plan->phases[i];
	}
	return answer;
}
