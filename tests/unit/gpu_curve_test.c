/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of GPUs over time: bounded, in order, and the highest between two points is in the second.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

static void gpu_point(struct run *run, uint64_t time_ns, uint64_t held, uint64_t highest)
{
	struct wire_gpu_point r = {
		.h = {.kind = WIRE_GPU_POINT,
		      .size = sizeof(r),
		      .time_ns = time_ns,
		      .tgid = MAIN.tgid,
		      .tid = MAIN.tid,
		      .started_ns = MAIN.started_ns},
		.held = held,
		.highest = highest,
		.pinned = held / 2,
	};

	assert_true(wire_record_ok(&r, sizeof(r)));
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
	assert_null(run->step);
}

static void row(struct run *run, enum wire_what what, uint64_t time_ns)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, time_ns, MAIN, "x");
	record_memory(&r, 10, 10, 10);
	feed(run, &r);
}

/* The finished curve. */
static const struct profile_gpu_point *curve(struct run *run, size_t *n)
{
	const struct profile_gpu_point *points;

	assert_int_equal(profile_finish(run->p, START_NS + 1000), 0);
	points = profile_gpu_points(run->p, n);
	assert_true(*n <= PROFILE_MAX_POINTS);
	for (size_t i = 0; i < *n; i++) {
		assert_true(points[i].highest >= points[i].held);
		assert_true(!i || points[i - 1].time_ns <= points[i].time_ns);
	}
	return points;
}

static void check(const struct profile_gpu_point *point, uint64_t time_ns, uint64_t held,
		  uint64_t highest)
{
	assert_int_equal(point->time_ns, START_NS + time_ns);
	assert_int_equal(point->held, held);
	assert_int_equal(point->highest, highest);
	assert_int_equal(point->pinned, held / 2);
}

/* What the driver frees after the run is no part of it. */
static void test_of_the_run_alone(void **state)
{
	struct run *run = *state;
	const struct profile_gpu_point *points;
	size_t n;

	row(run, WIRE_START, START_NS);
	gpu_point(run, START_NS + 40, 10, 90);
	gpu_point(run, START_NS + 20, 30, 30);
	gpu_point(run, START_NS + 80, 0, 10);
	row(run, WIRE_FINISH, START_NS + 70);
	gpu_point(run, START_NS + 90, 0, 10);
	points = curve(run, &n);
	assert_int_equal(n, 2);
	check(&points[0], 20, 30, 30);
	check(&points[1], 40, 10, 90);
}

/* A run that uses none has none. */
static void test_none(void **state)
{
	struct run *run = *state;
	size_t n;

	row(run, WIRE_START, START_NS);
	row(run, WIRE_FINISH, START_NS + 70);
	curve(run, &n);
	assert_int_equal(n, 0);
}

/* Of each window the highest and the last stay, and the last has the peaks of those between. */
static void test_many_points(void **state)
{
	enum { N = 100000, SPIKE = 77777 };
	struct run *run = *state;
	const struct profile_gpu_point *points;
	bool at_its_time = false;
	uint64_t highest = 0;
	size_t n;

	row(run, WIRE_START, START_NS);
	for (uint64_t i = 1; i <= N; i++)
		gpu_point(run, START_NS + i * MS, i % 100, i == SPIKE ? 5000 : i % 100 + 7);
	row(run, WIRE_FINISH, START_NS + (N + 1) * MS);
	points = curve(run, &n);
	assert_true(n > PROFILE_MAX_POINTS / 4);
	for (size_t i = 0; i < n; i++) {
		at_its_time |=
			points[i].time_ns == START_NS + SPIKE * MS && points[i].highest == 5000;
		if (points[i].highest != 5000)
			raise_to(&highest, points[i].highest);
	}
	assert_true(at_its_time);
	assert_int_equal(highest, 106);
	check(&points[n - 1], N * MS, N % 100, points[n - 1].highest);
	assert_true(points[n - 1].highest >= 7);
}

/* No stretch of the thinned curve tells of less than it had at most. */
static void test_stretches(void **state)
{
	enum { N = 60000 };
	struct run *run = *state;
	const struct profile_gpu_point *points;
	uint64_t from = 1;
	size_t n;

	row(run, WIRE_START, START_NS);
	for (uint64_t i = 1; i <= N; i++)
		gpu_point(run, START_NS + i * MS, 1, 1 + i * 7919 % 10007);
	row(run, WIRE_FINISH, START_NS + (N + 1) * MS);
	points = curve(run, &n);
	for (size_t k = 0; k < n; k++) {
		const uint64_t to = (points[k].time_ns - START_NS) / MS;
		uint64_t most = 0;

		for (uint64_t i = from; i <= to; i++)
			raise_to(&most, 1 + i * 7919 % 10007);
		assert_int_equal(points[k].highest, most);
		from = to + 1;
	}
	assert_int_equal(from, N + 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(of_the_run_alone),
		CASE(none),
		CASE(many_points),
		CASE(stretches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
