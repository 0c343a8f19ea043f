/* SPDX-License-Identifier: GPL-2.0-only */
/* Forecasts: programs whose figure at another size is known, and such as follow no law. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "bench/forecast.h"

#define GIB (1024.0 * 1024 * 1024)

enum { PROGRAMS = 200 };

static uint64_t seed;

/* From 0 to 1. */
static double uniform(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 11) / (double)(1ull << 53);
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

/* What a program takes for a model of x GB. */
struct program {
	double offset, slope, square;
};

static double at(const struct program *p, double x)
{
	return (p->offset + p->slope * x + p->square * x * x) * GIB;
}

static struct program linear(void)
{
	return (struct program){.slope = 0.5 + uniform()};
}

static struct program with_offset(void)
{
	return (struct program){.offset = 0.1 + 2 * uniform(), .slope = 0.5 + uniform()};
}

/* Activations that grow with the square, beside an offset or beside weights. */
static struct program with_activations(void)
{
	return (struct program){.offset = 0.2 * uniform(), .square = 0.1 + 0.2 * uniform()};
}

static struct program with_both(void)
{
	return (struct program){.slope = 0.5 + uniform(), .square = 0.02 + 0.1 * uniform()};
}

static struct program with_all(void)
{
	return (struct program){.offset = 0.1 + uniform(),
				.slope = 0.5 + uniform(),
				.square = 0.1 + 0.2 * uniform()};
}

/* How often the interval has the figure of the held-out size. */
static unsigned int held(struct program (*make)(void), double noise, unsigned int *known)
{
	static const double sizes[] = {0.5, 1, 2, 3, 4};
	const size_t n = sizeof(sizes) / sizeof(*sizes);
	unsigned int in = 0;

	*known = 0;
	for (int i = 0; i < PROGRAMS; i++) {
		const struct program program = make();
		struct forecast_point points[3 * 5];
		struct forecast f;
		const double truth = at(&program, 8);

		for (size_t k = 0; k < 3 * n; k++)
			points[k] = (struct forecast_point){
				sizes[k / 3], at(&program, sizes[k / 3]) * (1 + noise * normal())};
		f = forecast_make(points, 3 * n, 8);
		*known += f.state == FORECAST_KNOWN;
		in += f.state == FORECAST_KNOWN && f.low <= truth && truth <= f.high;
	}
	return in;
}

static void test_held_out_sizes(void **state)
{
	static const struct {
		const char *name;
		struct program (*make)(void);
		unsigned int least; /* of 100 that hold */
	} kinds[] = {{"linear", linear, 90},
		     {"linear with an offset", with_offset, 90},
		     {"square", with_activations, 90},
		     {"line and square", with_both, 90},
		     {"all three", with_all, 85}};
	static const double noises[] = {0, 0.002, 0.01, 0.03};
	unsigned int in, known;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		for (size_t k = 0; k < sizeof(noises) / sizeof(*noises); k++) {
			seed = 11;
			in = held(kinds[i].make, noises[k], &known);
			print_message("%s, noise %.3f: %u of %u that are told, of %d\n",
				      kinds[i].name, noises[k], in, known, PROGRAMS);
			if (in * 100 < known * kinds[i].least)
				fail_msg("%s, noise %g: expected %u of 100 to hold, got %u of %u",
					 kinds[i].name, noises[k], kinds[i].least, in, known);
			if (known < PROGRAMS * 3 / 4)
				fail_msg("%s, noise %g: expected a forecast for most, got %u of %d",
					 kinds[i].name, noises[k], known, PROGRAMS);
		}
	}
}

/* The interval is of use: not wider than it takes. */
static void test_narrow_where_all_is_clear(void **state)
{
	struct forecast_point points[] = {
		{1, 2.5 * GIB}, {2, 4.5 * GIB}, {4, 8.5 * GIB}, {8, 16.5 * GIB}};
	const struct forecast f = forecast_make(points, 4, 70);

	(void)state;
	assert_int_equal(f.state, FORECAST_KNOWN);
	assert_int_equal(f.law, LAW_LINEAR);
	assert_true(fabs(f.value - 140.5 * GIB) < GIB / 100);
	if (f.high - f.low > 0.1 * f.value)
		fail_msg("expected less than 10 %%, got %.2f to %.2f", f.low / GIB, f.high / GIB);
}

static void test_no_law(void **state)
{
	static const double series[][6] = {
		{1, 1, 1, 2, 2, 2}, {1, 1, 1, 1, 1, 4}, {1, 4, 1, 4, 1, 4},
		{3, 1, 1, 1, 1, 3}, {1, 1, 2, 2, 4, 4}, {5, 1, 4, 2, 3, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(series) / sizeof(*series); i++) {
		struct forecast_point points[6];
		struct forecast f;

		for (size_t k = 0; k < 6; k++)
			points[k] = (struct forecast_point){(double)k + 1, series[i][k] * GIB};
		f = forecast_make(points, 6, 20);
		if (f.state != FORECAST_BAD_FIT)
			fail_msg("series %zu: expected no forecast, got law %d, %.2f", i, f.law,
				 f.value / GIB);
	}
}

static void test_too_few_sizes(void **state)
{
	struct forecast_point points[] = {{1, 1}, {1, 1.1}, {2, 2}, {2, 2.1}};

	(void)state;
	assert_int_equal(forecast_make(points, 4, 3).state, FORECAST_TOO_FEW);
	assert_int_equal(forecast_make(points, 0, 3).state, FORECAST_TOO_FEW);
}

static void test_constant(void **state)
{
	struct forecast_point points[] = {{1, 100}, {2, 101}, {4, 100.5}, {8, 100}};
	const struct forecast f = forecast_make(points, 4, 70);

	(void)state;
	assert_int_equal(f.state, FORECAST_KNOWN);
	assert_true(f.low > 98 && f.high < 103 && f.low <= 100 && f.high >= 101);
}

static void test_nothing_at_all(void **state)
{
	struct forecast_point points[] = {{1, 0}, {2, 0}, {4, 0}};
	const struct forecast f = forecast_make(points, 3, 70);

	(void)state;
	assert_int_equal(f.state, FORECAST_KNOWN);
	assert_true(f.value == 0 && f.low <= 0 && f.high >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_out_sizes),
		cmocka_unit_test(test_narrow_where_all_is_clear),
		cmocka_unit_test(test_no_law),
		cmocka_unit_test(test_too_few_sizes),
		cmocka_unit_test(test_constant),
		cmocka_unit_test(test_nothing_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
