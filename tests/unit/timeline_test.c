/* SPDX-License-Identifier: GPL-2.0-only */
/* The timeline: bounded whatever comes, in order, and with the extremes that matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "records.h"

struct line {
	struct profile *p;
	uint32_t seq;
};

static int set_up(void **state)
{
	const struct profile_config config = {.page_size = RECORDS_PAGE};
	struct line *line = calloc(1, sizeof(*line));

	assert_non_null(line);
	line->p = profile_new(&config);
	assert_non_null(line->p);
	*state = line;
	return 0;
}

static int tear_down(void **state)
{
	struct line *line = *state;

	profile_free(line->p);
	free(line);
	return 0;
}

static void feed(struct line *line, const union record *r)
{
	const struct profile_checkpoint *step;

	assert_int_equal(profile_feed(line->p, &r->h, &step), 0);
}

static void point(struct line *line, uint64_t time_ns, uint64_t pages, uint64_t peak)
{
	union record r;

	record_point(&r, time_ns, MAIN, pages, peak);
	feed(line, &r);
}

static void hit(struct line *line, enum wire_what what, const char *name, uint64_t time_ns,
		uint64_t pages, uint64_t step_peak, uint64_t peak)
{
	union record r;

	record_checkpoint(&r, what, line->seq++, time_ns, MAIN, name);
	record_memory(&r, pages, step_peak, peak);
	feed(line, &r);
}

static const struct profile_point *finish(struct line *line, uint64_t end_ns, size_t *n)
{
	const struct profile_point *points;

	assert_int_equal(profile_finish(line->p, end_ns), 0);
	points = profile_points(line->p, n);
	assert_true(*n <= PROFILE_MAX_POINTS);
	for (size_t i = 1; i < *n; i++)
		assert_true(points[i - 1].time_ns <= points[i].time_ns);
	return points;
}

/* Returns the point that has this peak, in pages. */
static const struct profile_point *with_peak(const struct profile_point *points, size_t n,
					     uint64_t peak)
{
	const struct profile_point *found = NULL;

	for (size_t i = 0; i < n; i++) {
		if (points[i].peak != peak * RECORDS_PAGE)
			continue;
		assert_null(found);
		found = &points[i];
	}
	return found;
}

/* Points that fit stay as they were, even several at an instant. Only their order changes. */
static void test_few_points_stay(void **state)
{
	struct line *line = *state;
	const struct profile_point *points;
	size_t n;

	hit(line, WIRE_START, "", START_NS, 1, 1, 1);
	for (uint64_t i = 1; i < PROFILE_MAX_POINTS - 1; i++)
		point(line, START_NS + (i ^ 1) * 1000, i ^ 1, i);
	points = finish(line, START_NS + 100 * MS, &n);
	assert_int_equal(n, PROFILE_MAX_POINTS - 1);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(points[i].anon / RECORDS_PAGE,
				 i == 0 ? 1 : (points[i].time_ns - START_NS) / 1000);
	assert_int_equal(profile_losses(line->p)->thinned_points, 0);
}

/* A million points: bounded, the first, the last, the spike up and the spike down still there. */
static void test_many_points(void **state)
{
	struct line *line = *state;
	const uint64_t count = 1000000;
	const struct profile_point *points;
	bool up = false, down = false;
	size_t n;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t pages = i == 123456 ? 9999 : i == 654321 ? 1 : 1000 + i % 7;

		point(line, START_NS + i * 1000, pages, i < 123456 ? 1006 : 9999);
	}
	points = finish(line, START_NS + count * 1000, &n);
	assert_true(n > PROFILE_MAX_POINTS / 4);
	assert_int_equal(points[0].time_ns, START_NS);
	assert_int_equal(points[n - 1].time_ns, START_NS + (count - 1) * 1000);
	for (size_t i = 0; i < n; i++) {
		up |= points[i].time_ns == START_NS + 123456000 &&
		      points[i].anon == 9999 * RECORDS_PAGE;
		down |= points[i].time_ns == START_NS + 654321000 && points[i].anon == RECORDS_PAGE;
	}
	assert_true(up);
	assert_true(down);
	assert_int_equal(profile_totals(line->p)->peak_time_ns, START_NS + 123456000);
	assert_int_equal(profile_losses(line->p)->thinned_points, count - n);
}

/* A burst after long idling gets most of the points: windows are as narrow as the bound allows. */
static void test_burst_after_idle(void **state)
{
	struct line *line = *state;
	size_t n;

	point(line, START_NS, 1, 1);
	for (uint64_t i = 0; i < 100000; i++)
		point(line, START_NS + 3600000 * MS + i * 100, i % 100, 99);
	finish(line, START_NS + 3600100 * MS, &n);
	assert_true(n > PROFILE_MAX_POINTS / 4);
}

/* The point with a step's peak is the highest event of that step, whichever ring came first. */
static void peaks_of_steps(struct line *line, bool points_first)
{
	const struct profile_point *points;
	size_t n;

	for (int pass = 0; pass < 2; pass++) {
		if ((pass == 0) == points_first) {
			point(line, START_NS + 1 * MS, 50, 50);
			point(line, START_NS + 2 * MS, 480, 490);
			point(line, START_NS + 3 * MS, 60, 500);
			point(line, START_NS + 5 * MS, 200, 500);
			continue;
		}
		hit(line, WIRE_START, "", START_NS, 10, 10, 10);
		hit(line, WIRE_MARK, "a", START_NS + 4 * MS, 60, 500, 500);
		hit(line, WIRE_MARK, "b", START_NS + 6 * MS, 100, 210, 500);
		hit(line, WIRE_FINISH, "", START_NS + 7 * MS, 20, 101, 500);
	}
	points = finish(line, 0, &n);
	assert_int_equal(n, 8);
	assert_int_equal(with_peak(points, n, 500)->time_ns, START_NS + 2 * MS);
	assert_int_equal(with_peak(points, n, 500)->anon, 480 * RECORDS_PAGE);
	assert_int_equal(with_peak(points, n, 210)->time_ns, START_NS + 5 * MS);
	/* It only fell: its peak was at its beginning. */
	assert_int_equal(with_peak(points, n, 101)->time_ns, START_NS + 6 * MS);
	assert_int_equal(profile_totals(line->p)->peak_time_ns, START_NS + 2 * MS);
}

static void test_peaks_points_first(void **state)
{
	peaks_of_steps(*state, true);
}

static void test_peaks_checkpoints_first(void **state)
{
	peaks_of_steps(*state, false);
}

/* The kernel sends no point for a short spike: the peak is kept at the checkpoint that tells of it.
 */
static void test_spike_without_points(void **state)
{
	struct line *line = *state;
	const struct profile_point *points;
	size_t n;

	hit(line, WIRE_START, "", START_NS, 10, 10, 10);
	hit(line, WIRE_MARK, "a", START_NS + MS, 11, 3000, 3000);
	points = finish(line, START_NS + 2 * MS, &n);
	assert_int_equal(with_peak(points, n, 3000)->time_ns, START_NS + MS);
	assert_int_equal(with_peak(points, n, 3000)->anon, 11 * RECORDS_PAGE);
}

/* As many steps as have room keep their peaks through any flood of points. */
static void test_peaks_survive_a_flood(void **state)
{
	struct line *line = *state;
	const struct profile_point *points;
	const uint64_t steps = 1000, per_step = 300;
	size_t n;

	hit(line, WIRE_START, "", START_NS, 10, 10, 10);
	for (uint64_t i = 1; i <= steps; i++) {
		for (uint64_t j = 0; j < per_step; j++)
			point(line, START_NS + (i - 1) * MS + j * 1000, 100 + j, 10000 + i);
		hit(line, WIRE_MARK, "m", START_NS + i * MS, 10, 10000 + i, 10000 + i);
	}
	points = finish(line, START_NS + steps * MS, &n);
	for (uint64_t i = 1; i <= steps; i++)
		assert_non_null(with_peak(points, n, 10000 + i));
}

/*
 * 200,000 checkpoints: bounded, and of more steps and phases than have room the overall peak stays,
 * as does the peak of the long phase.
 */
static void test_many_checkpoints(void **state)
{
	struct line *line = *state;
	const struct profile_point *points;
	const uint64_t count = 200000;
	uint64_t marked = 0;
	size_t n;

	hit(line, WIRE_START, "", START_NS, 10, 10, 10);
	for (uint64_t i = 1; i <= count; i++) {
		uint64_t peak = i == 77777 ? 50000 : i == 150001 ? 40000 : 100 + i % 50;

		hit(line, i % 2 ? WIRE_BEGIN : WIRE_END, "Layer", START_NS + i * 5000, 100, peak,
		    i < 77777 ? 149 : 50000);
	}
	points = finish(line, START_NS + count * 5000 + 1, &n);
	assert_non_null(with_peak(points, n, 50000));
	assert_non_null(with_peak(points, n, 40000));
	assert_int_equal(profile_totals(line->p)->peak_rss, 50000 * RECORDS_PAGE);
	for (size_t i = 0; i < n; i++)
		marked += points[i].peak != 0;
	assert_true(marked <= PROFILE_MAX_POINTS / 2 + 1);
	assert_true(marked > PROFILE_MAX_POINTS / 8);
}

/* Few phases among many steps: each phase keeps its own peak, though higher steps are close by. */
static void test_phases_before_steps(void **state)
{
	struct line *line = *state;
	const struct profile_point *points;
	const uint64_t steps = 50000;
	size_t n;

	hit(line, WIRE_START, "", START_NS, 10, 10, 10);
	hit(line, WIRE_BEGIN, "quiet", START_NS + 100, 10, 70000, 70000);
	hit(line, WIRE_END, "quiet", START_NS + 200, 10, 33, 70000);
	for (uint64_t i = 0; i < steps; i++)
		hit(line, WIRE_METRIC, "loss", START_NS + 300 + i, 10, 60000, 70000);
	for (uint64_t i = 0; i < steps; i++)
		hit(line, WIRE_END, "none", START_NS + 300 + steps + i * 20000, 10, 100 + i % 100,
		    70000);
	points = finish(line, START_NS + 2000 * MS, &n);
	assert_non_null(with_peak(points, n, 33));
	assert_non_null(with_peak(points, n, 70000));
}

/* What was before the run is not in its timeline. */
static void test_before_start(void **state)
{
	struct line *line = *state;
	const struct profile_point *points;
	size_t n;

	point(line, START_NS - 5 * MS, 7, 7);
	hit(line, WIRE_START, "", START_NS, 10, 10, 10);
	points = finish(line, START_NS + MS, &n);
	assert_int_equal(n, 1);
	assert_int_equal(points[0].time_ns, START_NS);
}

/* Times and sizes that make no sense do no harm. */
static void test_absurd_records(void **state)
{
	struct line *line = *state;
	uint64_t value = 88172645463325252u;
	size_t n;

	for (int i = 0; i < 100000; i++) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
		if (i % 3)
			point(line, value, value >> 8, value >> 3);
		else
			hit(line, 1 + value % WIRE_FINISH, "x", value, value >> 4, value >> 2,
			    value >> 1);
	}
	finish(line, START_NS, &n);
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(few_points_stay),	       CASE(many_points),
		CASE(burst_after_idle),	       CASE(peaks_points_first),
		CASE(peaks_checkpoints_first), CASE(spike_without_points),
		CASE(peaks_survive_a_flood),   CASE(many_checkpoints),
		CASE(phases_before_steps),     CASE(before_start),
		CASE(absurd_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
