/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * baseline.h - a bench against an earlier one: how much each figure has changed, between which
 * bounds, and whether that passes a limit.
 *
 * The change is that of the means, and its interval is found by the bootstrap: both sides are drawn
 * again from their own runs, with repetition, 10,000 times. With few runs the plain percentiles of
 * that are too narrow, so they are widened as Hesterberg has it ("What Teachers Should Know About
 * the Bootstrap", 2015, 4.1): 95 % is what a t interval would have. A limit is passed only if the
 * whole interval is beyond it: noise alone fails no gate.
 */
#ifndef QPROF_BENCH_BASELINE_H
#define QPROF_BENCH_BASELINE_H

#include <stdio.h>

#include "bench/results.h"

enum { BASELINE_MIN_RUNS = 4 /* of a side: fewer say nothing about their spread */ };

struct bench_change {
	bool is_known; /* both sides have values */
	bool has_bounds;
	double old, new;  /* means */
	double low, high; /* of new - old; valid with has_bounds */
};

/* How the runs of a combination have changed. */
struct bench_change bench_change(const struct bench_values *old, const struct bench_values *new);

struct bench_gate {
	enum bench_figure figure;
	bool is_percent;
	double percent; /* of old */
	uint64_t amount;
	const char *text; /* as the user gave it */
};

enum gate_answer { GATE_HOLDS, GATE_PASSED, GATE_UNKNOWN };
enum gate_answer gate_judge(const struct bench_gate *gate, const struct bench_change *change);

struct bench_baseline {
	const struct bench_results *old, *new;
	const char *old_name; /* folder, for people */
	const struct bench_gate *gates;
	size_t n_gates;
	unsigned int width;
	bool all; /* tell also what did not change */
};

/*
 * Writes how the bench has changed, and which gates were passed. Combinations match by their
 * parameters. Returns the exit status: 0, 1 if a gate is passed, 3 if nobody can tell.
 */
int baseline_write(const struct bench_baseline *b, FILE *out);

#endif
