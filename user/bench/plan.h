/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * plan.h - what a program takes at another size, phase by phase, from profiles at several sizes.
 *
 * Phases whose names differ in numbers only are one: a larger model has more layers. Of these, the
 * highest peak and need counts, and the sum of what adds up.
 */
#ifndef QPROF_BENCH_PLAN_H
#define QPROF_BENCH_PLAN_H

#include <stdio.h>

#include "base/error.h"
#include "bench/forecast.h"
#include "bench/results.h"
#include "format/recording.h"

enum { PLAN_MAX_PROFILES = 256, PLAN_MAX_PHASES = 1000, PLAN_MAX_AMOUNTS = 8 };

struct plan_phase {
	char *name;   /* "Layer #", or the name that all of them have */
	char *group;  /* with '#' for each number */
	double begin; /* at which part of the run it begins, on average: their order */
	size_t n_begins;
	struct forecast_point *points[BENCH_FIGURES];
	size_t n[BENCH_FIGURES];
	struct forecast forecasts[BENCH_FIGURES];
};

struct plan {
	struct plan_phase run; /* the whole: no name */
	struct plan_phase *phases;
	size_t n_phases, n_profiles;
	double lowest, highest; /* sizes that were profiled */
	double at;
	/* A phase of weight in the run that follows no law: so nobody knows the run's peak. */
	const struct plan_phase *lawless;
};

void plan_free(struct plan *plan);
/* Adds a profile of that size, above 0. A run that failed is refused. Returns 0, or -1 and *err. */
int plan_add(struct plan *plan, const struct recording *r, const char *name, double size,
	     struct error *err);
/*
 * Makes the forecasts; no more profiles after it. The run's peak and need are the highest of its
 * phases: which phase that is may change with the size, and the run's own figures follow no law
 * then. They are looked at for what is in no phase.
 */
void plan_make(struct plan *plan, double at);

struct plan_view {
	const char *unit;	 /* what sizes are called: "model_gb" */
	const uint64_t *amounts; /* of memory: does it fit */
	size_t n_amounts;
	unsigned int width;
	bool colour;
};

/*
 * Return the exit status: 0; 1 if it does not fit into one of the amounts; 3 if nobody can tell.
 */
int plan_text(const struct plan *plan, const struct plan_view *view, FILE *out);
int plan_json(const struct plan *plan, const struct plan_view *view, FILE *out);

enum plan_answer { PLAN_FITS = 0, PLAN_DOES_NOT = 1, PLAN_UNKNOWN = 3 };
/* Whether the whole fits into that amount; *first is the first phase that does not for sure, or
 * else might not, or NULL. */
enum plan_answer plan_fits(const struct plan *plan, uint64_t amount,
			   const struct plan_phase **first);

#endif
