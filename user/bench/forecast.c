// SPDX-License-Identifier: GPL-2.0-only
#include "bench/forecast.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { MAX_SLOPES = FORECAST_MAX_SIZES * (FORECAST_MAX_SIZES - 1) / 2 };

/* Relative to the figure: what no fit is better than, and what is none any more. */
static const double finest = 0.002, worst = 0.1;
/* A law is as good as the best if its points are off by no more than twice as much. */
static const double rival = 2;
/* The law of three numbers is looked at, and taken, if its points are off by so much less. */
static const double better = 1.5, much_better = 4;
/* Below this spread over all sizes a figure is the same at each. */
static const double same = 0.02;

/* A law fitted to points. */
struct fit {
	enum forecast_law law;
	double a, b, c, off; /* off: what points are off by, in parts of the figure */
};

/* ---- Medians ----------------------------------------------------------------------------------
 */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_size);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static int by_x(const void *a, const void *b)
{
	const struct forecast_point *p = a, *q = b;

	if (p->x != q->x)
		return (p->x > q->x) - (p->x < q->x);
	return (p->y > q->y) - (p->y < q->y);
}

size_t forecast_merge(struct forecast_point *points, size_t n)
{
	size_t sizes = 0, first = 0;

	if (n)
		qsort(points, n, sizeof(*points), by_x);
	for (size_t i = 1; i <= n && sizes < FORECAST_MAX_SIZES; i++) {
		if (i < n && points[i].x == points[first].x)
			continue;
		points[sizes++] = (struct forecast_point){points[first].x,
							  (points[first + (i - first - 1) / 2].y +
							   points[first + (i - first) / 2].y) /
								  2};
		first = i;
	}
	return sizes;
}

/* ---- Laws -------------------------------------------------------------------------------------
 */

/* In these coordinates each law is a line: along u = across(x), up(x, y) = a + b u. */
static double across(enum forecast_law law, double x)
{
	switch (law) {
	case LAW_SQUARE:
		return x * x;
	case LAW_POWER:
		return log(x);
	default:
		return x;
	}
}

static double up(enum forecast_law law, double x, double y)
{
	switch (law) {
	case LAW_MIXED:
		return y / x;
	case LAW_POWER:
		return log(y);
	default:
		return y;
	}
}

/* Back from there. */
static double value_at(const struct fit *fit, double x)
{
	const double line = fit->a + fit->b * across(fit->law, x);

	switch (fit->law) {
	case LAW_FULL:
		return line + fit->c * x * x;
	case LAW_MIXED:
		return line * x;
	case LAW_POWER:
		return exp(line);
	default:
		return line;
	}
}

/* By how much the points are off. numbers: of the law. Returns false if that is beyond all. */
static bool measure(struct fit *fit, const struct forecast_point *points, size_t n, size_t numbers)
{
	double squares = 0;

	for (size_t i = 0; i < n; i++) {
		const double fitted = value_at(fit, points[i].x);
		const double off = fitted > 0 ? (points[i].y - fitted) / fitted : INFINITY;

		squares += off * off;
	}
	fit->off = sqrt(squares / (double)(n - numbers));
	return isfinite(fit->off);
}

/* Returns false if the law cannot be one of these points. */
static bool fit_law(struct fit *fit, const struct forecast_point *points, size_t n)
{
	double slopes[MAX_SLOPES], rests[FORECAST_MAX_SIZES];
	size_t n_slopes = 0;

	for (size_t i = 0; i < n; i++) {
		if (fit->law == LAW_POWER && points[i].y <= 0)
			return false;
		for (size_t k = 0; k < i; k++)
			slopes[n_slopes++] =
				(up(fit->law, points[i].x, points[i].y) -
				 up(fit->law, points[k].x, points[k].y)) /
				(across(fit->law, points[i].x) - across(fit->law, points[k].x));
	}
	fit->b = median(slopes, n_slopes);
	for (size_t i = 0; i < n; i++)
		rests[i] = up(fit->law, points[i].x, points[i].y) -
			   fit->b * across(fit->law, points[i].x);
	fit->a = median(rests, n);
	return measure(fit, points, n, 2);
}

/* ---- The last law: three numbers, by least squares --------------------------------------------
 */

struct system {
	double rows[3][4]; /* normal equations, and their right side */
};

/* Gauss's elimination. Returns false if there is no one solution. */
static bool solve(struct system *s, double *solution)
{
	for (int i = 0; i < 3; i++) {
		int pivot = i;

		for (int k = i + 1; k < 3; k++)
			if (fabs(s->rows[k][i]) > fabs(s->rows[pivot][i]))
				pivot = k;
		for (int k = 0; k < 4; k++) {
			const double swapped = s->rows[i][k];

			s->rows[i][k] = s->rows[pivot][k];
			s->rows[pivot][k] = swapped;
		}
		if (fabs(s->rows[i][i]) < 1e-300)
			return false;
		for (int r = 0; r < 3; r++) {
			const double times = r == i ? 0 : s->rows[r][i] / s->rows[i][i];

			for (int k = 0; k < 4; k++)
				s->rows[r][k] -= times * s->rows[i][k];
		}
	}
	for (int i = 0; i < 3; i++)
		solution[i] = s->rows[i][3] / s->rows[i][i];
	return true;
}

/* right: NULL for the points' own figures. Weights are 1 / height^2, of sizes in parts of unit. */
static struct system normal_equations(const struct forecast_point *points, size_t n, double unit,
				      const double *heights, const double *right)
{
	struct system s = {0};

	for (size_t i = 0; i < n; i++) {
		const double x = points[i].x / unit, w = 1 / (heights[i] * heights[i]);
		const double g[3] = {1, x, x * x};

		for (int r = 0; r < 3; r++) {
			for (int k = 0; k < 3; k++)
				s.rows[r][k] += w * g[r] * g[k];
			s.rows[r][3] += right ? 0 : w * g[r] * points[i].y;
		}
	}
	for (int r = 0; right && r < 3; r++)
		s.rows[r][3] = right[r];
	return s;
}

static bool fit_full(struct fit *fit, const struct forecast_point *points, size_t n)
{
	const double unit = points[n - 1].x;
	double heights[FORECAST_MAX_SIZES], solution[3];
	struct system s;

	if (n < 4)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (points[i].y <= 0)
			return false;
		heights[i] = points[i].y;
	}
	s = normal_equations(points, n, unit, heights, NULL);
	if (!solve(&s, solution))
		return false;
	fit->a = solution[0];
	fit->b = solution[1] / unit;
	fit->c = solution[2] / unit / unit;
	return measure(fit, points, n, 3);
}

/* As leverage(), of three numbers. */
static double full_leverage(const struct fit *fit, const struct forecast_point *points, size_t n,
			    double x)
{
	const double unit = points[n - 1].x, at = value_at(fit, x);
	const double g[3] = {1, x / unit, x / unit * x / unit};
	double heights[FORECAST_MAX_SIZES], solution[3];
	struct system s;

	for (size_t i = 0; i < n; i++)
		heights[i] = value_at(fit, points[i].x);
	s = normal_equations(points, n, unit, heights, g);
	if (!solve(&s, solution))
		return INFINITY;
	return (g[0] * solution[0] + g[1] * solution[1] + g[2] * solution[2]) / (at * at);
}

/* ---- The interval -----------------------------------------------------------------------------
 */

/* The 95th percentile of Student's t. */
static double student(size_t freedom)
{
	static const double exact[] = {6.314, 2.920, 2.353, 2.132, 2.015,
				       1.943, 1.895, 1.860, 1.833, 1.812};
	const size_t n = sizeof(exact) / sizeof(*exact);

	if (!freedom)
		return INFINITY;
	return freedom <= n ? exact[freedom - 1] : 1.645 + 1.6 / (double)freedom;
}

/* What an error in proportion to the figure is in proportion to, where the law is a line. */
static double height(const struct fit *fit, double x)
{
	return fit->law == LAW_POWER ? 1 : up(fit->law, x, value_at(fit, x));
}

/*
 * How much farther off the line is at x than a point is, as a variance: the leverage of a
 * regression whose errors are in proportion to the figure.
 */
static double leverage(const struct fit *fit, const struct forecast_point *points, size_t n,
		       double x)
{
	const double u = across(fit->law, x), at = height(fit, x);
	double w = 0, wu = 0, wuu = 0, det;

	for (size_t i = 0; i < n; i++) {
		const double v = across(fit->law, points[i].x);
		const double fitted = height(fit, points[i].x);
		const double weight = 1 / (fitted * fitted);

		w += weight;
		wu += weight * v;
		wuu += weight * v * v;
	}
	det = w * wuu - wu * wu;
	return (wuu - 2 * u * wu + u * u * w) / det / (at * at);
}

/* Widens the forecast by what the law says. */
static void span(struct forecast *f, const struct fit *fit, const struct forecast_point *points,
		 size_t n, double x)
{
	const double value = value_at(fit, x), off = fit->off > finest ? fit->off : finest;
	const bool is_full = fit->law == LAW_FULL;
	const double far = is_full ? full_leverage(fit, points, n, x) : leverage(fit, points, n, x);
	const double part = student(is_full ? n - 3 : n - 2) * off * sqrt(1 + far);
	const bool is_log = fit->law == LAW_POWER;
	const double low = is_log ? value * exp(-part) : value * (1 - part);
	const double high = is_log ? value * exp(part) : value * (1 + part);

	if (!(value >= 0) || !isfinite(high))
		return;
	f->low = fmin(f->low, fmax(low, 0));
	f->high = fmax(f->high, high);
}

/* What a figure that is the same at each size comes to. */
static struct forecast constant(const struct forecast_point *points, size_t n, double lowest,
				double highest)
{
	double values[FORECAST_MAX_SIZES], middle;

	for (size_t i = 0; i < n; i++)
		values[i] = points[i].y;
	middle = median(values, n);
	return (struct forecast){.state = FORECAST_KNOWN,
				 .law = LAW_LINEAR,
				 .a = middle,
				 .value = middle,
				 .low = fmax(2 * lowest - highest, 0) - finest * middle,
				 .high = 2 * highest - lowest + finest * middle};
}

/* Returns which law fits best, or -1. Three numbers fit all that two do, and lead far
 * astray. */
static int fit_all(struct fit *fits, bool *fitted, const struct forecast_point *points, size_t n)
{
	int best = -1;

	for (int law = 0; law < LAW_FULL; law++) {
		fits[law] = (struct fit){.law = (enum forecast_law)law};
		fitted[law] = fit_law(&fits[law], points, n);
		if (fitted[law] && (best < 0 || fits[law].off < fits[best].off))
			best = law;
	}
	fits[LAW_FULL] = (struct fit){.law = LAW_FULL};
	fitted[LAW_FULL] = fit_full(&fits[LAW_FULL], points, n) &&
			   (best < 0 || (fits[best].off > 2 * finest &&
					 fits[LAW_FULL].off * better < fits[best].off));
	if (fitted[LAW_FULL] && (best < 0 || fits[LAW_FULL].off * much_better < fits[best].off))
		return LAW_FULL;
	return best;
}

struct forecast forecast_make(struct forecast_point *points, size_t n, double x)
{
	struct fit fits[FORECAST_LAWS];
	bool fitted[FORECAST_LAWS];
	struct forecast f = {.state = FORECAST_BAD_FIT};
	double lowest = INFINITY, highest = 0;
	int best;

	n = forecast_merge(points, n);
	if (n < FORECAST_MIN_SIZES)
		return (struct forecast){.state = FORECAST_TOO_FEW};
	for (size_t i = 0; i < n; i++) {
		lowest = fmin(lowest, points[i].y);
		highest = fmax(highest, points[i].y);
	}
	if (highest - lowest <= same * highest)
		return constant(points, n, lowest, highest);
	best = fit_all(fits, fitted, points, n);
	/* Points that are off by a good part of what there is to explain follow no law. */
	if (best < 0 || fits[best].off > worst ||
	    fits[best].off * highest > worst * (highest - lowest))
		return f;
	f = (struct forecast){.state = FORECAST_KNOWN,
			      .law = fits[best].law,
			      .a = fits[best].a,
			      .b = fits[best].b,
			      .c = fits[best].c,
			      .value = fmax(value_at(&fits[best], x), 0),
			      .low = INFINITY};
	for (int law = 0; law < FORECAST_LAWS; law++)
		if (fitted[law] &&
		    (fits[law].off <= rival * fits[best].off || fits[law].off <= 2 * finest))
			span(&f, &fits[law], points, n, x);
	f.low = fmin(f.low, f.value);
	f.high = fmax(f.high, f.value);
	return f;
}
