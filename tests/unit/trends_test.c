/* SPDX-License-Identifier: GPL-2.0-only */
/* Trends: what grows is found with its slope, what does not is never said to grow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/trends.h"

#define MIB (1024.0 * 1024)

enum { RUNS = 200, MOST = 400 };

/* ---- Series -----------------------------------------------------------------------------------
 */

static uint64_t seed;

/* From -1 to 1, the same in each run. */
static double noise(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 11) / (double)(1ull << 52) - 1;
}

/* What never is a trend; `run` varies length, size and shape. */
static double constant(size_t i, size_t n, size_t run)
{
	(void)i, (void)n;
	return 500 * MIB + (double)run * MIB;
}

static double noisy(size_t i, size_t n, size_t run)
{
	(void)i, (void)n;
	return 500 * MIB + (double)(run % 50) * 4 * MIB * noise();
}

/* A cache or an arena that is full after a fifth of the repeats at most. */
static double warm_up(size_t i, size_t n, size_t run)
{
	const double time = (double)n / (5 + (double)(run % 20));

	return 300 * MIB + 200 * MIB * (1 - exp(-(double)i / time)) + MIB * noise();
}

/* Garbage that is collected 3 to 9 times in all. */
static double sawtooth(size_t i, size_t n, size_t run)
{
	const double period = (double)n / (3 + (double)(run % 7));

	return 300 * MIB + 100 * MIB * fmod((double)i + (double)(run % 11), period) / period +
	       MIB * noise();
}

static double single_step(size_t i, size_t n, size_t run)
{
	return 300 * MIB + (i > n * (1 + run % 8) / 10 ? 100 * MIB : 0) + MIB * noise();
}

static double walk(size_t i, size_t n, size_t run)
{
	static double at;

	(void)n, (void)run;
	at = i ? at + 2 * MIB * noise() : 0;
	return 500 * MIB + at;
}

typedef double (*shape_fn)(size_t i, size_t n, size_t run);

static size_t count_alarms(shape_fn shape)
{
	size_t alarms = 0;

	for (size_t run = 0; run < RUNS; run++) {
		const size_t n = 10 + run * 7 % (MOST - 10);
		double values[MOST], slope;

		seed = run + 1;
		for (size_t i = 0; i < n; i++)
			values[i] = shape(i, n, run);
		alarms += trend_grows(values, n, TREND_MEMORY, &slope);
	}
	return alarms;
}

static void what_does_not_grow_is_not_said_to(void **state)
{
	(void)state;
	assert_int_equal(count_alarms(constant), 0);
	assert_int_equal(count_alarms(noisy), 0);
	assert_int_equal(count_alarms(warm_up), 0);
	assert_int_equal(count_alarms(sawtooth), 0);
	assert_int_equal(count_alarms(single_step), 0);
}

/* A random walk goes somewhere; it is taken for growth only where it has gone there all the time.
 */
static void a_walk_is_rarely_growth(void **state)
{
	(void)state;
	assert_true(count_alarms(walk) <= RUNS / 5);
}

static void growth_has_its_slope(void **state)
{
	(void)state;
	for (size_t n = 8; n <= MOST; n += 56) {
		double values[MOST], slope;

		seed = n;
		for (size_t i = 0; i < n; i++)
			values[i] = 100 * MIB + MIB * (double)i + MIB / 4 * noise();
		assert_true(trend_grows(values, n, TREND_MEMORY, &slope));
		assert_true(fabs(slope / MIB - 1) < (n < 20 ? 0.1 : 0.01));
	}
}

static void growth_with_noise_and_outliers(void **state)
{
	double values[64], slope;

	(void)state;
	seed = 7;
	for (size_t i = 0; i < 64; i++)
		values[i] = 900 * MIB + MIB * (double)i + 8 * MIB * noise() +
			    (i % 13 == 0 ? 15 * MIB : 0);
	assert_true(trend_grows(values, 64, TREND_MEMORY, &slope));
	assert_true(fabs(slope / MIB - 1) < 0.15);
}

static void few_repeats_need_like_steps(void **state)
{
	const double even[] = {100 * MIB, 110 * MIB, 121 * MIB, 130 * MIB, 141 * MIB};
	const double uneven[] = {100 * MIB, 101 * MIB, 130 * MIB, 131 * MIB, 160 * MIB};
	double slope;

	(void)state;
	assert_false(trend_grows(even, 4, TREND_MEMORY, &slope));
	assert_true(trend_grows(even, 5, TREND_MEMORY, &slope));
	assert_true(fabs(slope / MIB - 10.2) < 0.5);
	assert_false(trend_grows(uneven, 5, TREND_MEMORY, &slope));
}

static void little_growth_is_nothing_to_speak_of(void **state)
{
	double values[64], slope;

	(void)state;
	for (size_t i = 0; i < 64; i++)
		values[i] = 100 * MIB + 4096.0 * (double)i;
	assert_false(trend_grows(values, 64, TREND_MEMORY, &slope));
}

/* ---- Names ------------------------------------------------------------------------------------
 */

static struct trend_phase phase(const char *name, double memory, double peak)
{
	return (struct trend_phase){.name = name,
				    .is_pair = true,
				    .figures = {[TREND_MEMORY] = memory,
						[TREND_NEEDS] = NAN,
						[TREND_SWAP] = NAN,
						[TREND_PEAK] = peak}};
}

static void find(const struct trend_phase *phases, size_t n, struct trend **found, size_t *n_found)
{
	struct trends trends = {0};

	for (size_t i = 0; i < n; i++)
		assert_int_equal(trends_add(&trends, &phases[i]), 0);
	assert_int_equal(trends_find(&trends, found, n_found), 0);
	trends_free(&trends);
}

static void repeats_of_a_name(void **state)
{
	static char names[16][16];
	struct trend_phase phases[32];
	struct trend *found;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		snprintf(names[i], sizeof(names[i]), "Layer %zu/16", i * 7);
		phases[2 * i] = phase(names[i], (100 + 10 * (double)i) * MIB, 900 * MIB);
		phases[2 * i + 1] = phase("Pack", 50 * MIB, 900 * MIB);
	}
	find(phases, 32, &found, &n);
	assert_int_equal(n, 1);
	assert_string_equal(found[0].name, "Layer #/#");
	assert_int_equal(found[0].repeats, 16);
	assert_true(found[0].grows[TREND_MEMORY]);
	assert_false(found[0].grows[TREND_PEAK]);
	assert_false(found[0].grows[TREND_NEEDS]);
	assert_true(isnan(found[0].last[TREND_NEEDS]));
	assert_true(fabs(found[0].per_repeat[TREND_MEMORY] / MIB - 10) < 0.001);
	assert_true(found[0].last[TREND_MEMORY] == 250 * MIB);
	free(found);
}

/* Nine tensors a block; memory stays behind with each. One sentence is enough: of the blocks. */
static void tensors_of_a_block_are_one_repeat(void **state)
{
	static char names[32 * 9][40];
	struct trend_phase phases[32 * 9];
	struct trend *found;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 32 * 9; i++) {
		snprintf(names[i], sizeof(names[i]), "blk.%zu.part_%c.weight", i / 9,
			 (char)('a' + i % 9));
		phases[i] = phase(names[i], (100 + (double)i) * MIB, (200 + (double)i) * MIB);
	}
	find(phases, 32 * 9, &found, &n);
	assert_int_equal(n, 1);
	assert_string_equal(found[0].name, "blk.#");
	assert_int_equal(found[0].repeats, 32);
	assert_true(fabs(found[0].per_repeat[TREND_MEMORY] / MIB - 9) < 0.001);
	assert_true(fabs(found[0].per_repeat[TREND_PEAK] / MIB - 9) < 0.001);
	assert_true(found[0].last[TREND_PEAK] == (200 + 32 * 9 - 1) * MIB);
	free(found);
}

/* A block is a phase itself, around those of its tensors: it is one repeat, and counts once. */
static void a_block_with_its_tensors_is_one_repeat(void **state)
{
	static char names[32 * 3][40];
	struct trend_phase phases[32 * 3];
	struct trend *found;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 32 * 3; i++) {
		const size_t in = i % 3;

		snprintf(names[i], sizeof(names[i]), in == 2 ? "blk.%zu" : "blk.%zu.part_%zu",
			 i / 3, in);
		phases[i] = phase(names[i], (100 + (double)(i / 3 * 3)) * MIB, 200 * MIB);
		phases[i].figures[TREND_TIME] = in == 2 ? (double)(i + 1) * 1e9 : (double)i * 0.4e9;
	}
	find(phases, 32 * 3, &found, &n);
	assert_int_equal(n, 1);
	assert_string_equal(found[0].name, "blk.#");
	assert_int_equal(found[0].repeats, 32);
	assert_true(fabs(found[0].per_repeat[TREND_MEMORY] / MIB - 3) < 0.001);
	assert_true(fabs(found[0].per_repeat[TREND_TIME] / 1e9 - 3) < 0.001);
	free(found);
}

/* Gaps do not count beside pairs, whichever come first. Swap and I/O grow as memory does. */
static void swap_and_io_of_pairs(void **state)
{
	static char names[16][16];
	struct trend_phase phases[24];
	struct trend *found;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 24; i++) {
		const struct profile_usage used = {.io_read = (i + 1) << 30,
						   .disk_write = (i + 1) << 26};

		snprintf(names[i % 16], sizeof(names[i % 16]), "Layer %zu", i);
		phases[i] = phase(names[i % 16], 900 * MIB, 0);
		phases[i].is_pair = i >= 8;
		phases[i].figures[TREND_SWAP] = (double)i * 32 * MIB;
		trend_used(&phases[i], &used);
	}
	find(phases, 24, &found, &n);
	assert_int_equal(n, 1);
	assert_string_equal(found[0].name, "Layer #");
	assert_int_equal(found[0].repeats, 16);
	assert_true(found[0].grows[TREND_SWAP] && found[0].grows[TREND_READ]);
	assert_true(found[0].per_repeat[TREND_SWAP] == 32 * MIB);
	assert_true(found[0].per_repeat[TREND_READ] == 1024 * MIB);
	assert_true(found[0].per_repeat[TREND_STORAGE_WRITTEN] == 64 * MIB);
	assert_false(found[0].grows[TREND_MEMORY] || found[0].grows[TREND_WRITTEN] ||
		     found[0].grows[TREND_STORAGE_READ] || found[0].grows[TREND_TIME]);
	free(found);
}

/* Memory that stays behind on a GPU, in parts of a block: what there is at last, and the highest.
 */
static void memory_of_gpus(void **state)
{
	static char names[16][32];
	struct trend_phase phases[16];
	struct trend *found;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		snprintf(names[i], sizeof(names[i]), "blk.%zu.part_%zu", i / 2, i % 2);
		phases[i] = phase(names[i], 900 * MIB, 0);
		phases[i].figures[TREND_GPU] = (double)(i / 2 * 512 + i % 2 * 128) * MIB;
		phases[i].figures[TREND_GPU_PEAK] = (double)(i / 2 * 512 + (1 - i % 2) * 300) * MIB;
	}
	find(phases, 16, &found, &n);
	assert_int_equal(n, 1);
	assert_string_equal(found[0].name, "blk.#");
	assert_int_equal(found[0].repeats, 8);
	assert_true(found[0].grows[TREND_GPU] && found[0].grows[TREND_GPU_PEAK]);
	assert_false(found[0].grows[TREND_MEMORY]);
	assert_true(found[0].per_repeat[TREND_GPU] == 512 * MIB);
	assert_true(found[0].last[TREND_GPU] == (7 * 512 + 128) * MIB);
	assert_true(found[0].last[TREND_GPU_PEAK] == (7 * 512 + 300) * MIB);
	free(found);
}

static void nothing_is_found_in_nothing(void **state)
{
	struct trend *found;
	size_t n;

	(void)state;
	find(NULL, 0, &found, &n);
	assert_int_equal(n, 0);
	free(found);
}

/* Names are a program's: they may be as long as they want, and any bytes. */
static void any_name(void **state)
{
	static char names[8][600];
	struct trend_phase phases[8];
	struct trend *found;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		memset(names[i], i % 2 ? 0xc3 : '9', sizeof(names[i]) - 1);
		memset(names[i] + 1, 0xff, 300);
		phases[i] = phase(names[i], (double)i * 100 * MIB, 0);
	}
	find(phases, 8, &found, &n);
	for (size_t i = 0; i < n; i++)
		assert_true(strlen(found[i].name) < TREND_NAME_MAX);
	free(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_grow_is_not_said_to),
		cmocka_unit_test(a_walk_is_rarely_growth),
		cmocka_unit_test(growth_has_its_slope),
		cmocka_unit_test(growth_with_noise_and_outliers),
		cmocka_unit_test(few_repeats_need_like_steps),
		cmocka_unit_test(little_growth_is_nothing_to_speak_of),
		cmocka_unit_test(repeats_of_a_name),
		cmocka_unit_test(tensors_of_a_block_are_one_repeat),
		cmocka_unit_test(a_block_with_its_tensors_is_one_repeat),
		cmocka_unit_test(swap_and_io_of_pairs),
		cmocka_unit_test(memory_of_gpus),
		cmocka_unit_test(nothing_is_found_in_nothing),
		cmocka_unit_test(any_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
