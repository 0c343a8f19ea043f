/* SPDX-License-Identifier: GPL-2.0-only */
/* Benches: parameters and their combinations, the order of runs, and intervals that hold. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/baseline.h"
#include "bench/bench.h"
#include "bench/outputs.h"

#define MIB (1024.0 * 1024)

enum { RUNS = 200 };

/* ---- Parameters -------------------------------------------------------------------------------
 */

/* All values of a parameter, with spaces between. */
static char *values_of(const struct parameter *parameter)
{
	static char all[4096];

	size_t len = 0;

	*all = '\0';
	for (size_t i = 0; i < parameter->n && len < sizeof(all); i++)
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", i ? " " : "",
					parameter->values[i]);
	return all;
}

static void test_list(void **state)
{
	struct parameters p = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(parameters_add_list(&p, "method", "minmax,a\\,b,,c\\d", &err), 0);
	assert_string_equal(values_of(&p.items[0]), "minmax a,b  c\\d");
	parameters_free(&p);
}

static void test_scans(void **state)
{
	static const struct {
		const char *from, *to, *step, *values;
	} cases[] = {
		{"1", "3", NULL, "1 2 3"},
		{"0", "0.3", "0.1", "0.0 0.1 0.2 0.3"},
		{"-1", "1", "0.5", "-1.0 -0.5 0.0 0.5 1.0"},
		{"8", "33", "8", "8 16 24 32"},
		{"5", "5", NULL, "5"},
		{"0.125", "0.5", "0.25", "0.125 0.375"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parameters p = {0};
		struct error err = {0};

		assert_int_equal(parameters_add_scan(&p, "n", cases[i].from, cases[i].to, &err), 0);
		if (cases[i].step)
			assert_int_equal(parameters_set_step(&p, cases[i].step, &err), 0);
		assert_string_equal(values_of(&p.items[0]), cases[i].values);
		parameters_free(&p);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *from, *to, *step;
	} cases[] = {{"a", "3", "1"},
		     {"1", "3x", "1"},
		     {"3", "1", "1"},
		     {"1", "2", "0"},
		     {"1", "2", "-1"},
		     {"1", "2", ""},
		     {"1", "1e3", "1"},
		     {"", "1", "1"},
		     {"0", "1", ".."},
		     {"0", "2000", "1"},
		     {"0", "9999999999999999", "1"},
		     {"0", "1", "0.0000000001"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct parameters p = {0};
		struct error err = {0};
		int failed = parameters_add_scan(&p, "n", cases[i].from, cases[i].to, &err);

		if (!failed)
			failed = parameters_set_step(&p, cases[i].step, &err);
		if (!failed)
			fail_msg("expected %s to %s by %s to be refused, got %s", cases[i].from,
				 cases[i].to, cases[i].step, values_of(&p.items[0]));
		assert_true(err.text[0] != '\0');
		parameters_free(&p);
	}
}

static void test_names_are_checked(void **state)
{
	static const char *const wrong[] = {"", "a b", "a{", "a=", "method"};
	struct parameters p = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(parameters_add_list(&p, "method", "a", &err), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(parameters_add_list(&p, wrong[i], "a", &err), -1);
	assert_int_equal(parameters_set_step(&p, "1", &err), -1); /* of a list */
	parameters_free(&p);
}

static void test_combinations(void **state)
{
	struct parameters p = {0};
	struct error err = {0};
	char seen[512] = "", *text;
	size_t len = 0;

	(void)state;
	assert_int_equal(parameters_combinations(&p), 1);
	assert_int_equal(parameters_add_list(&p, "m", "a,b", &err), 0);
	assert_int_equal(parameters_add_list(&p, "bits", "4,8,16", &err), 0);
	assert_int_equal(parameters_combinations(&p), 6);
	for (size_t i = 0; i < 6; i++) {
		text = parameters_fill(&p, i, "{m}{bits} ");
		len += (size_t)snprintf(seen + len, sizeof(seen) - len, "%s", text);
		free(text);
	}
	assert_string_equal(seen, "a4 a8 a16 b4 b8 b16 ");
	text = parameters_fill(&p, 5, "{m}{{m}} {x} {bits {} }{bits}{");
	assert_string_equal(text, "b{b} {x} {bits {} }16{");
	free(text);
	text = parameters_label(&p, 1);
	assert_string_equal(text, "m=a, bits=8");
	free(text);
	parameters_free(&p);
}

/* ---- Runs -------------------------------------------------------------------------------------
 */

static char *words[] = {(char *)"quantize", (char *)"{m}", NULL};

static struct bench some_bench(unsigned int repeats, uint64_t seed)
{
	struct bench b = {.command = words,
			  .n_command = 2,
			  .repeats = repeats,
			  .is_shuffled = seed,
			  .seed = seed};
	struct error err = {0};

	assert_int_equal(parameters_add_list(&b.parameters, "m", "a/b,c d", &err), 0);
	assert_int_equal(parameters_add_list(&b.parameters, "bits", "4,8,16", &err), 0);
	return b;
}

static void test_each_run_comes_once(void **state)
{
	struct bench b = some_bench(7, 42);
	struct bench_run *runs, *again;
	unsigned int seen[6][7] = {0}, in_order = 0;
	size_t n;

	(void)state;
	runs = bench_schedule(&b, &n);
	assert_int_equal(n, 42);
	for (size_t i = 0; i < n; i++) {
		seen[runs[i].combination][runs[i].repeat]++;
		assert_int_equal(runs[i].repeat, i / 6); /* one repeat after the other */
		in_order += runs[i].combination == i % 6;
	}
	for (size_t i = 0; i < 42; i++)
		assert_int_equal(seen[i / 7][i % 7], 1);
	assert_true(in_order < 21);
	again = bench_schedule(&b, &n);
	assert_memory_equal(runs, again, n * sizeof(*runs));
	free(again);
	/* With more repeats the first come as before. */
	b.repeats = 9;
	again = bench_schedule(&b, &n);
	assert_int_equal(n, 54);
	assert_memory_equal(runs, again, 42 * sizeof(*runs));
	free(again);
	free(runs);
	parameters_free(&b.parameters);
}

static void test_given_order(void **state)
{
	struct bench b = some_bench(2, 0);
	struct bench_run *runs;
	size_t n;

	(void)state;
	runs = bench_schedule(&b, &n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(runs[i].combination, i % 6);
	free(runs);
	parameters_free(&b.parameters);
}

static void test_names_of_files(void **state)
{
	struct bench b = some_bench(2, 0);
	char *name = bench_run_name(&b, (struct bench_run){1, 0});

	(void)state;
	assert_string_equal(name, "002-m=a_b,bits=8.r1");
	free(name);
	parameters_free(&b.parameters);
}

static void test_matrix(void **state)
{
	struct bench b = some_bench(1, 0);
	struct bench_matrix m;
	const size_t by_m[] = {0, 3, 1, 4, 2, 5};

	(void)state;
	assert_int_equal(matrix_make(&m, &b, 0), 0);
	assert_int_equal(m.n_rows, 3);
	assert_int_equal(m.n_columns, 2);
	assert_memory_equal(m.combinations, by_m, sizeof(by_m));
	assert_string_equal(m.labels[2], "bits=16");
	matrix_free(&m);
	assert_int_equal(matrix_make(&m, &b, 1), 0);
	assert_int_equal(m.n_rows, 2);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(m.combinations[i], i);
	assert_string_equal(m.labels[1], "m=c d");
	matrix_free(&m);
	parameters_free(&b.parameters);
}

/* ---- Intervals --------------------------------------------------------------------------------
 */

static uint64_t seed = 1;

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

/* Times of a noisy machine: now and then a run takes much longer. */
static double skewed(void)
{
	return exp(normal()) / 2 + (uniform() < 0.1 ? 4 : 0);
}

static struct bench_values runs_of(size_t n, double (*noise)(void), double mean, double part)
{
	struct bench_values values = {.n = n};

	for (size_t i = 0; i < n; i++)
		values.items[i] = (uint64_t)(mean * (1 + part * noise()));
	values_settle(&values);
	return values;
}

static const struct bench_gate no_more = {.is_percent = true, .percent = 0, .text = "0%"};

/* How often of RUNS comparisons without a difference the gate says that there is one. */
static unsigned int false_alarms(size_t n, double (*noise)(void), double part)
{
	unsigned int alarms = 0;

	for (int i = 0; i < RUNS; i++) {
		const struct bench_values old = runs_of(n, noise, 1000 * MIB, part);
		const struct bench_values new = runs_of(n, noise, 1000 * MIB, part);
		const struct bench_change change = bench_change(&old, &new);

		alarms += gate_judge(&no_more, &change) == GATE_PASSED;
	}
	return alarms;
}

static void test_noise_raises_no_gate(void **state)
{
	static const size_t sizes[] = {4, 5, 10};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const unsigned int even = false_alarms(sizes[i], normal, 0.05);
		const unsigned int odd = false_alarms(sizes[i], skewed, 0.1);

		if (even > RUNS / 20 || odd > RUNS / 20)
			fail_msg("%zu runs: expected at most %d alarms of %d, got %u and %u",
				 sizes[i], RUNS / 20, RUNS, even, odd);
	}
}

static void test_a_difference_is_found(void **state)
{
	unsigned int found = 0;

	(void)state;
	for (int i = 0; i < RUNS; i++) {
		const struct bench_values old = runs_of(5, normal, 1000 * MIB, 0.005);
		const struct bench_values new = runs_of(5, normal, 1050 * MIB, 0.005);
		const struct bench_change change = bench_change(&old, &new);

		found += gate_judge(&no_more, &change) == GATE_PASSED;
	}
	if (found != RUNS)
		fail_msg("expected 5 %% above 0.5 %% of noise in %d of %d, got %u", RUNS, RUNS,
			 found);
}

/* How often the bounds contain the difference that there is. */
static void test_bounds_hold(void **state)
{
	unsigned int holds = 0;

	(void)state;
	for (int i = 0; i < RUNS; i++) {
		const struct bench_values old = runs_of(5, normal, 1000 * MIB, 0.05);
		const struct bench_values new = runs_of(5, normal, 1100 * MIB, 0.05);
		const struct bench_change change = bench_change(&old, &new);

		holds += change.low <= 100 * MIB && change.high >= 100 * MIB;
	}
	if (holds < RUNS * 93 / 100)
		fail_msg("expected the bounds to hold in 93 of 100 or more, got %u of %d", holds,
			 RUNS);
}

static void test_gates(void **state)
{
	const struct bench_change change = {true, true, 100, 110, 8, 12},
				  vague = {.is_known = true};
	const struct bench_gate percent7 = {.is_percent = true, .percent = 7},
				percent8 = {.is_percent = true, .percent = 8},
				amount7 = {.amount = 7}, amount8 = {.amount = 8};

	(void)state;
	assert_int_equal(gate_judge(&percent7, &change), GATE_PASSED);
	assert_int_equal(gate_judge(&percent8, &change), GATE_HOLDS);
	assert_int_equal(gate_judge(&amount7, &change), GATE_PASSED);
	assert_int_equal(gate_judge(&amount8, &change), GATE_HOLDS);
	assert_int_equal(gate_judge(&amount8, &vague), GATE_UNKNOWN);
}

static void test_values(void **state)
{
	struct bench_values values = {.n = 4, .items = {40, 10, 20, 30}};

	(void)state;
	values_settle(&values);
	assert_int_equal(values.median, 25);
	assert_int_equal(values.lowest, 10);
	assert_int_equal(values.highest, 40);
	assert_true(fabs(values.mean - 25) < 1e-9);
	assert_true(fabs(values.deviation - sqrt(500.0 / 3)) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_scans),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_names_are_checked),
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_each_run_comes_once),
		cmocka_unit_test(test_given_order),
		cmocka_unit_test(test_names_of_files),
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_gates),
		cmocka_unit_test(test_noise_raises_no_gate),
		cmocka_unit_test(test_a_difference_is_found),
		cmocka_unit_test(test_bounds_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
