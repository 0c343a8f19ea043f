/* SPDX-License-Identifier: GPL-2.0-only */
/* What each process holds over time, and what it held when the tree was at its peak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

static void check_share(const struct profile_at_peak *at, size_t i, uint32_t process,
			uint64_t pages)
{
	assert_true(i < at->n_shares);
	assert_int_equal(at->shares[i].process, process);
	assert_int_equal(at->shares[i].anon, pages * RECORDS_PAGE);
}

/* What each process held at the peak, whatever it held before and after. */
static void test_shares_of_the_peak(void **state)
{
	struct run *run = *state;
	struct profile_at_peak at;

	process_record(run, WIRE_EXEC, MAIN, 1, "a", 2, 10);
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 0);
	point(run, MAIN, 100, 110, 110);
	point(run, CHILD, 300, 400, 400); /* the peak: 100 and 300 */
	point(run, CHILD, 50, 150, 400);
	point(run, MAIN, 200, 250, 400);
	finish(run);
	at = profile_at_peak(run->p);
	assert_int_equal(at.tree.anon, 400 * RECORDS_PAGE);
	assert_int_equal(at.n_shares, 2);
	check_share(&at, 0, 1, 300);
	check_share(&at, 1, 0, 100);
}

/* The peak was between two points. The first is nearer: at the second, the memory is gone. */
static void test_peak_between_points(void **state)
{
	struct run *run = *state;
	struct profile_at_peak at;

	process_record(run, WIRE_EXEC, MAIN, 1, "a", 2, 10);
	point(run, MAIN, 390, 390, 390);
	point(run, MAIN, 100, 100, 400);
	finish(run);
	at = profile_at_peak(run->p);
	assert_int_equal(at.n_shares, 1);
	check_share(&at, 0, 0, 390);
}

/* Points may come after the exit of their process, which is in the other ring. */
static void test_share_of_a_process_that_is_gone(void **state)
{
	struct run *run = *state;
	struct profile_at_peak at;
	union record r;

	process_record(run, WIRE_EXEC, MAIN, 1, "a", 2, 10);
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 0);
	record_process(&r, WIRE_EXIT, run->now_ns + 2 * MS, CHILD, MAIN.tgid, "", 0);
	feed(run, &r);
	point(run, CHILD, 300, 310, 310);
	point(run, CHILD, 20, 30, 310);
	run->now_ns += 10 * MS;
	point(run, MAIN, 500, 520, 520); /* CHILD is gone, with its last 20 */
	finish(run);
	at = profile_at_peak(run->p);
	assert_int_equal(at.n_shares, 1);
	check_share(&at, 0, 0, 500);
}

/* However many points and processes there are, they are bounded and in order, and the highest point
 * of each process stays. */
static void test_points_are_bounded(void **state)
{
	enum { PROCESSES = 40, ROUNDS = 2000 };
	struct run *run = *state;
	const struct profile_process_point *points;
	bool seen[PROCESSES] = {false};
	size_t n;

	for (uint32_t i = 0; i < PROCESSES; i++)
		process_record(run, WIRE_FORK, (struct record_who){200 + i, 200 + i, 10 + i}, 1, "",
			       0, 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < PROCESSES; i++)
			point(run, (struct record_who){200 + i, 200 + i, 10 + i},
			      round == 7 * i ? 5000 : 10 + round % 3, 100, 100);
	}
	finish(run);
	points = profile_process_points(run->p, &n);
	/* Windows are as narrow as the bound allows. */
	assert_in_range(n, PROFILE_MAX_PROCESS_POINTS / 4, PROFILE_MAX_PROCESS_POINTS);
	for (size_t i = 0; i < n; i++) {
		const uint32_t process = points[i].share.process;

		assert_in_range(process, 0, PROCESSES - 1);
		seen[process] |= points[i].share.anon == 5000 * RECORDS_PAGE;
		if (!i || points[i - 1].share.process < process)
			continue;
		assert_int_equal(points[i - 1].share.process, process);
		assert_true(points[i - 1].time_ns <= points[i].time_ns);
	}
	for (size_t i = 0; i < PROCESSES; i++)
		assert_true(seen[i]);
	assert_true(profile_losses(run->p)->thinned_points > 0);
}

/* Of more processes than have room, the largest keep their points; of the shares of the peak, the
 * largest are named, in order. */
static void test_many_processes(void **state)
{
	enum { PROCESSES = 3000, POINTS = 14, KEPT = PROFILE_MAX_PROCESS_POINTS / 4 };
	struct run *run = *state;
	const struct profile_process_point *points;
	bool seen[PROCESSES] = {false};
	struct profile_at_peak at;
	size_t n;

	for (uint32_t i = 0; i < PROCESSES; i++)
		process_record(run, WIRE_FORK, (struct record_who){200 + i, 200 + i, 10 + i}, 1, "",
			       0, 0);
	for (uint32_t round = 0; round < POINTS; round++)
		for (uint32_t i = 0; i < PROCESSES; i++) {
			const uint32_t k = i * 7 % PROCESSES; /* the larger are spread */

			point(run, (struct record_who){200 + i, 200 + i, 10 + i}, 1 + k, 9000,
			      9000 + round * PROCESSES + i);
		}
	finish(run);
	points = profile_process_points(run->p, &n);
	assert_in_range(n, KEPT, PROFILE_MAX_PROCESS_POINTS);
	for (size_t i = 0; i < n; i++)
		seen[points[i].share.process] = true;
	for (uint32_t i = 0; i < PROCESSES; i++)
		assert_int_equal(seen[i], i * 7 % PROCESSES >= PROCESSES - KEPT);
	at = profile_at_peak(run->p);
	assert_int_equal(at.n_shares, PROFILE_MAX_SHARES);
	for (uint32_t i = 0; i < PROFILE_MAX_SHARES; i++)
		assert_int_equal(at.shares[i].anon, (PROCESSES - i) * RECORDS_PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(shares_of_the_peak),
		CASE(peak_between_points),
		CASE(share_of_a_process_that_is_gone),
		CASE(points_are_bounded),
		CASE(many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
