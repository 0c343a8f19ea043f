/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tree has used over time: checkpoints and timers make one curve that never falls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

static void row(struct run *run, enum wire_what what, uint64_t time_ns, uint64_t cpu_ns,
		uint64_t rchar)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, time_ns, MAIN, "x");
	record_memory(&r, 10, 10, 10);
	r.cp.tree.usage.cpu_ns = cpu_ns;
	r.cp.tree.usage.rchar = rchar;
	feed(run, &r);
}

static void timer(struct run *run, uint64_t time_ns, uint64_t cpu_ns, uint64_t rchar)
{
	union record r;

	record_usage(&r, time_ns, MAIN, cpu_ns);
	r.usage.tree.rchar = rchar;
	feed(run, &r);
}

/* The finished curve: bounded, in order, and nothing falls. */
static const struct profile_usage_point *curve(struct run *run, size_t *n)
{
	const struct profile_usage_point *points;

	assert_int_equal(profile_finish(run->p, run->now_ns), 0);
	points = profile_usage_points(run->p, n);
	assert_true(*n <= PROFILE_MAX_POINTS);
	for (size_t i = 1; i < *n; i++) {
		assert_true(points[i - 1].time_ns <= points[i].time_ns);
		assert_true(points[i - 1].usage.cpu_ns <= points[i].usage.cpu_ns);
		assert_true(points[i - 1].usage.io_read <= points[i].usage.io_read);
	}
	return points;
}

static void check(const struct profile_usage_point *point, uint64_t time_ns, uint64_t cpu_ns,
		  uint64_t read)
{
	assert_int_equal(point->time_ns, time_ns);
	assert_int_equal(point->usage.cpu_ns, cpu_ns);
	assert_int_equal(point->usage.io_read, read);
}

/* The rings are read one after the other: here all rows come first. */
static void test_rows_and_timers(void **state)
{
	struct run *run = *state;
	const struct profile_usage_point *points;
	size_t n;

	row(run, WIRE_START, START_NS, 0, 0);
	row(run, WIRE_MARK, START_NS + 40, 35, 7);
	row(run, WIRE_FINISH, START_NS + 90, 80, 9);
	timer(run, START_NS + 20, 18, 7);
	timer(run, START_NS + 60, 50, 8);
	points = curve(run, &n);
	assert_int_equal(n, 5);
	check(&points[0], START_NS, 0, 0);
	check(&points[1], START_NS + 20, 18, 7);
	check(&points[2], START_NS + 40, 35, 7);
	check(&points[3], START_NS + 60, 50, 8);
	check(&points[4], START_NS + 90, 80, 9);
}

/* Two walks at almost the same time do not see the same. Rows are as they are: timers yield. */
static void test_timers_yield_to_rows(void **state)
{
	struct run *run = *state;
	const struct profile_usage_point *points;
	size_t n;

	row(run, WIRE_START, START_NS, 5, 5);
	timer(run, START_NS + 1, 4, 6);	  /* less CPU time than the row before */
	timer(run, START_NS + 39, 37, 5); /* more than the row after, and fewer bytes than before */
	row(run, WIRE_MARK, START_NS + 40, 35, 8);
	row(run, WIRE_FINISH, START_NS + 90, 80, 9);
	points = curve(run, &n);
	assert_int_equal(n, 5);
	check(&points[0], START_NS, 5, 5);
	check(&points[1], START_NS + 1, 5, 6);
	check(&points[2], START_NS + 39, 35, 6);
	check(&points[3], START_NS + 40, 35, 8);
	check(&points[4], START_NS + 90, 80, 9);
}

/* A row may take back bytes that io_uring had counted too early. Then the curve never had them. */
static void test_row_that_falls(void **state)
{
	struct run *run = *state;
	const struct profile_usage_point *points;
	size_t n;

	row(run, WIRE_START, START_NS, 0, 0);
	row(run, WIRE_MARK, START_NS + 10, 5, 100);
	timer(run, START_NS + 15, 6, 100);
	row(run, WIRE_FINISH, START_NS + 20, 9, 60);
	points = curve(run, &n);
	assert_int_equal(n, 4);
	check(&points[1], START_NS + 10, 5, 60);
	check(&points[3], START_NS + 20, 9, 60);
}

/* Only what is in the run: others of its processes may be torn down after it. */
static void test_after_the_end(void **state)
{
	struct run *run = *state;
	const struct profile_usage_point *points;
	size_t n;

	row(run, WIRE_START, START_NS, 0, 0);
	row(run, WIRE_FINISH, START_NS + 20, 9, 0);
	timer(run, START_NS + 10, 6, 0);
	timer(run, START_NS + 30, 12, 0);
	points = curve(run, &n);
	assert_int_equal(n, 3);
	check(&points[2], START_NS + 20, 9, 0);
}

/* Rows alone are in the profile already. */
static void test_no_timers(void **state)
{
	struct run *run = *state;
	size_t n;

	row(run, WIRE_START, START_NS, 0, 0);
	for (uint64_t i = 1; i < 3 * PROFILE_MAX_POINTS; i++)
		row(run, WIRE_MARK, START_NS + i * 10, i, i);
	row(run, WIRE_FINISH, START_NS + 20 * MS, 90000, 90000);
	curve(run, &n);
	assert_int_equal(n, 0);
}

/* A day of points: bounded, ends where the run ends, and no stretch has lost its share. */
static void test_many_points(void **state)
{
	struct run *run = *state;
	const uint64_t count = 20 * 86400, apart = 50 * MS;
	const struct profile_usage_point *points;
	size_t n;

	row(run, WIRE_START, START_NS, 0, 0);
	for (uint64_t i = 1; i < count; i++)
		timer(run, START_NS + i * apart, i * 7, i);
	row(run, WIRE_FINISH, START_NS + count * apart, count * 7, count);
	points = curve(run, &n);
	assert_true(n > PROFILE_MAX_POINTS / 4);
	check(&points[0], START_NS, 0, 0);
	check(&points[n - 1], START_NS + count * apart, count * 7, count);
	for (size_t i = 1; i < n; i++) {
		assert_int_equal(points[i].usage.cpu_ns,
				 (points[i].time_ns - START_NS) / apart * 7);
		assert_true(points[i].time_ns - points[i - 1].time_ns <=
			    4 * count * apart / PROFILE_MAX_POINTS);
	}
	assert_int_equal(profile_losses(run->p)->thinned_points, count + 1 - n);
}

/* However many rows and points of usage there are, the timeline of memory keeps what it had. */
static void test_memory_stays(void **state)
{
	struct run *run = *state;
	const struct profile_point *points;
	bool spike = false;
	union record r;
	size_t n;

	row(run, WIRE_START, START_NS, 0, 0);
	for (uint64_t i = 1; i < 40000; i++) {
		timer(run, START_NS + i * MS, i, 0);
		if (i % 10)
			continue;
		record_point(&r, START_NS + i * MS + 1, MAIN, i == 20000 ? 9999 : 10, 9999);
		feed(run, &r);
	}
	row(run, WIRE_FINISH, START_NS + 40000 * MS, 40000, 0);
	curve(run, &n);
	points = profile_points(run->p, &n);
	for (size_t i = 0; i < n; i++)
		spike |= points[i].time_ns == START_NS + 20000 * MS + 1 &&
			 points[i].anon == 9999 * RECORDS_PAGE;
	assert_int_equal(n, 4001); /* the two rows, and 3999 points: below the bound */
	assert_true(spike);
	assert_int_equal(profile_totals(run->p)->peak_rss, 9999 * RECORDS_PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows_and_timers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_timers_yield_to_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_row_that_falls, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_after_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_timers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_points, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_memory_stays, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
