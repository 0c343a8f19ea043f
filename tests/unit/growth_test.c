/* SPDX-License-Identifier: GPL-2.0-only */
/* What grows, while it does: the limit is known from half way on, and nothing else is said to grow.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/growth.h"

#define MIB    (1ull << 20)
#define SECOND 1000000000ull

enum { RUNS = 200 };

static uint64_t seed, now_ns;

/* From -1 to 1, the same in each run. */
static double noise(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 11) / (double)(1ull << 52) - 1;
}

static void hit(struct growth *g, enum wire_what what, const char *name, uint64_t held,
		uint64_t step_peak)
{
	const struct profile_checkpoint step = {
		.what = what,
		.name = {.raw = name, .raw_len = strlen(name), .text = name},
		.time_ns = now_ns,
		.started_ns = 1,
		.tgid = 7,
		.tid = 7,
		.tree = {.rss = held + 5 * MIB,
			 .file = 5 * MIB,
			 .anon = held,
			 .step_peak = step_peak + 5 * MIB},
	};

	growth_step(g, &step);
}

/* A phase of a second. */
static void phase(struct growth *g, const char *name, uint64_t held, uint64_t peak)
{
	hit(g, WIRE_BEGIN, name, held, held);
	now_ns += SECOND;
	hit(g, WIRE_END, name, held, peak);
}

static void layer(struct growth *g, size_t i, uint64_t held, uint64_t peak)
{
	char name[32];

	snprintf(name, sizeof(name), "Layer %zu", i);
	phase(g, name, held, peak);
}

static struct growth *begin(void)
{
	struct growth *g = growth_new();

	assert_non_null(g);
	now_ns = SECOND;
	hit(g, WIRE_START, "", 0, 0);
	return g;
}

/* 1 MiB in each of 64 phases, with noise of an eighth of it: the limit is what the 64th reaches. */
static void a_limit_is_known_from_half_way_on(void **state)
{
	struct growth *g = begin();
	const uint64_t limit = (100 + 64) * MIB;

	(void)state;
	seed = 1;
	for (size_t i = 1; i < 64; i++) {
		const uint64_t held = (uint64_t)((100 + (double)i + noise() / 8) * (double)MIB);
		struct growth_end end;

		layer(g, i, held, held);
		if (i < 32)
			continue;
		assert_true(growth_ends(g, limit - held, held, &end));
		assert_string_equal(end.name, "Layer #");
		assert_true(fabs((double)end.per_repeat / (double)MIB - 1) <= 0.01);
		assert_true(end.at_repeat >= 63 && end.at_repeat <= 65);
		assert_true(end.ns >= (end.at_repeat - end.repeats) * SECOND * 99 / 100);
		assert_true(end.ns <= (end.at_repeat - end.repeats) * SECOND * 101 / 100);
	}
	growth_free(g);
}

/* What a phase has for a while has to fit, too. In the midst of a phase, that is no growth. */
static void within_a_phase(void **state)
{
	struct growth *g = begin();
	struct growth_end end;

	(void)state;
	for (size_t i = 1; i <= 16; i++)
		layer(g, i, i * 10 * MIB, i * 10 * MIB + 50 * MIB);
	/* 160 are held, 190 are left: after 14 more, the 50 do not fit. */
	assert_true(growth_ends(g, 190 * MIB, 160 * MIB, &end));
	assert_int_equal(end.at_repeat, 16 + 14);
	assert_true(growth_ends(g, 140 * MIB, 210 * MIB, &end));
	assert_int_equal(end.at_repeat, 16 + 14);
	assert_int_equal(end.ns, 14 * SECOND);
	/* It is not half way there. */
	assert_false(growth_ends(g, 240 * MIB, 160 * MIB, &end));
	growth_free(g);
}

/* A block around those of its tensors is one repeat, not two. */
static void a_block_with_its_tensors(void **state)
{
	struct growth *g = begin();
	struct growth_end end;
	char name[32];

	(void)state;
	for (uint64_t i = 1; i <= 16; i++) {
		snprintf(name, sizeof(name), "blk.%d", (int)i);
		hit(g, WIRE_BEGIN, name, (i - 1) * 10 * MIB, 0);
		strcat(name, ".attn");
		phase(g, name, i * 10 * MIB - MIB, 0);
		*strrchr(name, '.') = '\0';
		hit(g, WIRE_END, name, i * 10 * MIB, 0);
	}
	assert_true(growth_ends(g, 140 * MIB, 160 * MIB, &end));
	assert_string_equal(end.name, "blk.#");
	assert_int_equal(end.repeats, 16);
	assert_int_equal(end.per_repeat, 10 * MIB);
	assert_int_equal(end.at_repeat, 30);
	growth_free(g);
}

/* More repeats than values are kept; the names of tensors are of their block. */
static void a_long_run_of_tensors(void **state)
{
	struct growth *g = begin();
	struct growth_end end;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		for (size_t k = 0; k < 3; k++) {
			char name[32];

			snprintf(name, sizeof(name), "blk.%zu.part_%zu", i, k);
			phase(g, name, (100 + 3 * i + k) * MIB, (100 + 3 * i + k) * MIB);
		}
	}
	assert_true(growth_ends(g, 300 * MIB, (100 + 2999) * MIB, &end));
	assert_string_equal(end.name, "blk.#");
	assert_int_equal(end.repeats, 1000);
	assert_true(fabs((double)end.per_repeat / (double)MIB - 3) <= 0.03);
	assert_true(end.at_repeat >= 1099 && end.at_repeat <= 1101);
	growth_free(g);
}

/* Hundreds of names that come once take no room from the one that repeats; gaps are left out. */
static void many_names(void **state)
{
	struct growth *g = begin();
	struct growth_end end;

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		char name[32] = "setup a";

		name[6] = (char)('a' + i % 26);
		name[5] = (char)('A' + i / 26);
		phase(g, name, 50 * MIB, 50 * MIB);
		hit(g, WIRE_MARK, "mark", 50 * MIB, 50 * MIB);
		layer(g, i, (100 + i) * MIB, (100 + i) * MIB);
	}
	assert_true(growth_ends(g, 100 * MIB, 399 * MIB, &end));
	assert_string_equal(end.name, "Layer #");
	assert_int_equal(end.repeats, 300);
	growth_free(g);
}

static double sawtooth(size_t i, size_t n, size_t run)
{
	const double period = (double)n / (3 + (double)(run % 7));

	return 300 + 100 * fmod((double)i + (double)(run % 11), period) / period + noise();
}

static double warm_up(size_t i, size_t n, size_t run)
{
	(void)run;
	return 300 + 200 * (1 - exp(-(double)i / ((double)n / 20))) + noise();
}

static double noisy(size_t i, size_t n, size_t run)
{
	(void)i, (void)n;
	return 500 + (double)(run % 50) * 4 * noise();
}

static double constant(size_t i, size_t n, size_t run)
{
	(void)i, (void)n;
	return 500 + (double)run;
}

/* At no time of a run, of 200. None comes to half of the limit. */
static void what_does_not_grow_has_no_end(void **state)
{
	static double (*const shapes[])(size_t, size_t, size_t) = {sawtooth, warm_up, noisy,
								   constant};
	const uint64_t limit = 1600 * MIB;

	(void)state;
	for (size_t run = 0; run < RUNS; run++) {
		const size_t n = 40 + run * 7 % 200;
		struct growth *g = begin();
		struct growth_end end;

		seed = run + 1;
		for (size_t i = 0; i < n; i++) {
			const uint64_t held = (uint64_t)(shapes[run % 4](i, n, run) * (double)MIB);

			layer(g, i, held, held);
			assert_false(growth_ends(g, limit - held, held, &end));
		}
		growth_free(g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_is_known_from_half_way_on),
		cmocka_unit_test(within_a_phase),
		cmocka_unit_test(a_block_with_its_tensors),
		cmocka_unit_test(a_long_run_of_tensors),
		cmocka_unit_test(many_names),
		cmocka_unit_test(what_does_not_grow_has_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
