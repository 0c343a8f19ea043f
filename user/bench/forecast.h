/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * forecast.h - a figure at another size, from what it was at some sizes. Pure.
 *
 * Four laws are tried: a + b x, a + b x^2, a x + b x^2 and a x^b; and where four sizes or more fit
 * none of them, a + b x + c x^2. The slope is the median of those
 * between all pairs of sizes (Theil-Sen), of the medians of the runs of each size: one run that
 * went astray moves nothing (the last law: weighted least squares). The interval has what the
 * points are off by, the more so the farther away the size is (the prediction interval of a
 * regression with errors in proportion to the figure), and spans all laws that the points bear out
 * about as well as the best: far from the sizes that were measured, they differ most.
 */
#ifndef QPROF_BENCH_FORECAST_H
#define QPROF_BENCH_FORECAST_H

#include <stdbool.h>
#include <stddef.h>

enum {
	FORECAST_MIN_SIZES = 3,
	FORECAST_MAX_SIZES = 64,
};

enum forecast_law { LAW_LINEAR, LAW_SQUARE, LAW_MIXED, LAW_POWER, LAW_FULL, FORECAST_LAWS };

enum forecast_state {
	FORECAST_KNOWN,
	FORECAST_TOO_FEW, /* sizes */
	FORECAST_BAD_FIT, /* no law fits: a step, say */
};

struct forecast {
	enum forecast_state state;
	enum forecast_law law; /* that fits best; valid if known, as what follows */
	double a, b, c;
	double value, low, high; /* at the size that was asked for: low to high in 9 of 10 cases */
};

struct forecast_point {
	double x; /* size, above 0 */
	double y; /* not negative */
};

/* Leaves one point for each size, the median of its runs, in order. Returns how many. */
size_t forecast_merge(struct forecast_point *points, size_t n);
/* Points may come in any order, several at one size: they are merged. */
struct forecast forecast_make(struct forecast_point *points, size_t n, double x);

#endif
