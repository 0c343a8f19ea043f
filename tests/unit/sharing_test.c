/* SPDX-License-Identifier: GPL-2.0-only */
/* How much of a sum over processes may be the same pages: what is there at least. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "format/least.h"
#include "format/recorded.h"
#include "model/sharing.h"
#include "model/timeline.h"
#include "profile_run.h"

struct has {
	uint64_t anon, shmem, file, swap;
};

/* A process holds `own` now, the tree `tree`, of which so many pages were inherited. */
static void holds(struct run *run, struct record_who who, struct has own, struct has tree,
		  uint64_t inherited)
{
	union record r;

	record_point(&r, run->now_ns, who, own.anon, tree.anon + tree.shmem + tree.file);
	r.point.shmem = own.shmem;
	r.point.file = own.file;
	r.point.swap = own.swap;
	r.point.tree_anon = tree.anon;
	r.point.tree_shmem = tree.shmem;
	r.point.tree_file = tree.file;
	r.point.tree_swap = tree.swap;
	r.point.inherited = inherited;
	run->now_ns += MS;
	feed(run, &r);
}

static void begin(struct run *run)
{
	process_record(run, WIRE_EXEC, MAIN, 1, "a", 2, 0);
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 0);
}

/* The i-th point of the finished timeline. */
static const struct profile_point *point_at(const struct run *run, size_t i)
{
	size_t n;
	const struct profile_point *points = profile_points(run->p, &n);

	assert_true(i < n);
	return &points[i];
}

static void check_least(const struct run *run, size_t i, uint64_t pages)
{
	assert_int_equal(point_least(point_at(run, i)), pages * RECORDS_PAGE);
}

/* Anonymous memory is there once, but for what was inherited; that may be in swap, too. */
static void test_inherited(void **state)
{
	struct run *run = *state;

	begin(run);
	holds(run, MAIN, (struct has){.anon = 200}, (struct has){.anon = 400}, 200);
	holds(run, CHILD, (struct has){.anon = 260}, (struct has){.anon = 460}, 200);
	holds(run, CHILD, (struct has){.anon = 200, .swap = 60},
	      (struct has){.anon = 300, .swap = 160}, 200);
	/* It gave back what it had inherited. There is never less than nothing. */
	holds(run, CHILD, (struct has){.anon = 1}, (struct has){.anon = 120}, 200);
	finish(run);
	check_least(run, 0, 200);
	check_least(run, 1, 260);
	check_least(run, 2, 260);
	check_least(run, 3, 0);
}

/* The tree has as much shared memory as the process that maps the most of it, at any time. */
static void test_shmem(void **state)
{
	const struct record_who third = {.tgid = 102, .tid = 102, .started_ns = 3};
	struct run *run = *state;

	begin(run);
	process_record(run, WIRE_FORK, third, MAIN.tgid, "", 0, 0);
	holds(run, MAIN, (struct has){.shmem = 50}, (struct has){.shmem = 50}, 0);
	holds(run, CHILD, (struct has){.shmem = 80}, (struct has){.shmem = 130}, 0);
	holds(run, third, (struct has){.anon = 5, .shmem = 20},
	      (struct has){.anon = 5, .shmem = 150}, 0);
	holds(run, CHILD, (struct has){.shmem = 10}, (struct has){.anon = 5, .shmem = 80}, 0);
	/* The process that now has the most ends, and another point says that it is gone. */
	process_record(run, WIRE_EXIT, MAIN, 1, "", 0, 0);
	holds(run, CHILD, (struct has){.shmem = 60}, (struct has){.anon = 5, .shmem = 80}, 0);
	holds(run, CHILD, (struct has){.shmem = 15}, (struct has){.anon = 5, .shmem = 35}, 0);
	finish(run);
	check_least(run, 0, 50);
	check_least(run, 1, 80);
	check_least(run, 2, 85);
	check_least(run, 3, 55);
	check_least(run, 4, 65);
	check_least(run, 5, 25);
}

/* A checkpoint knows what its own process maps, and of a process alone that nobody shares it. */
static void test_checkpoint(void **state)
{
	struct run *run = *state;
	union record r;

	begin(run);
	record_checkpoint(&r, WIRE_MARK, 0, run->now_ns, MAIN, "a");
	r.cp.tree.memory = (struct wire_memory){.anon = 90, .shmem = 40};
	r.cp.own.memory = (struct wire_memory){.anon = 60, .shmem = 10};
	r.cp.inherited = 20;
	r.cp.processes = 2;
	feed(run, &r);
	r.cp.processes = 1;
	r.cp.inherited = 0;
	r.h.time_ns += MS;
	feed(run, &r);
	finish(run);
	check_least(run, 0, 90 - 20 + 10);
	check_least(run, 1, 90 + 40);
}

/* Of points close together, the one with the highest bound stays, whatever the sums are. */
static void test_thinned(void **state)
{
	enum { POINTS = 3 * TIMELINE_CAP, AT = POINTS / 2 + 7 };
	struct run *run = *state;
	const struct profile_point *points;
	uint64_t least = 0;
	size_t n;

	begin(run);
	for (size_t i = 0; i < POINTS; i++)
		holds(run, MAIN, (struct has){.anon = 500}, (struct has){.anon = 1000 + i % 5},
		      i == AT ? 100 : 900);
	finish(run);
	points = profile_points(run->p, &n);
	assert_true(n < POINTS);
	for (size_t i = 0; i < n; i++)
		raise_to(&least, point_least(&points[i]));
	assert_int_equal(least, (1000 + AT % 5 - 100) * RECORDS_PAGE);
}

static void expect_words(struct run *run, bool in_full, const char *expected)
{
	struct recording_share shares[PROFILE_MAX_SHARES];
	const struct recording_peak peak = recorded_peak(run->p, shares);
	char words[LEAST_WORDS_MAX] = "";

	least_of_peak(words, &peak, profile_totals(run->p)->peak_rss, in_full);
	assert_string_equal(words, expected);
}

/* The peak: files, too, count once as far as one process maps them. */
static void test_peak(void **state)
{
	struct run *run = *state;
	struct profile_at_peak at;

	begin(run);
	holds(run, MAIN, (struct has){51200, 0, 256, 0}, (struct has){51200, 0, 256, 0}, 0);
	holds(run, CHILD, (struct has){66560, 512, 768, 0}, (struct has){117760, 512, 1024, 0},
	      51200);
	finish(run);
	at = profile_at_peak(run->p);
	assert_int_equal(at.least, (66560 + 512 + 768) * RECORDS_PAGE);
	assert_int_equal(at.repeated_file, 256 * RECORDS_PAGE);
	expect_words(
		run, false,
		"at least 265 MiB if each page counts once: processes may share up to 201 MiB");
	expect_words(run, true,
		     "at least 265 MiB if each page counts once: processes may share up to 200 MiB "
		     "inherited at fork, 1.00 MiB mapped files");
}

/* Nothing is said where next to nothing is shared. What one process had was there, too. */
static void test_peak_of_one(void **state)
{
	struct run *run = *state;

	begin(run);
	holds(run, CHILD, (struct has){.anon = 100}, (struct has){.anon = 100}, 100);
	finish(run);
	assert_int_equal(profile_at_peak(run->p).least, 100 * RECORDS_PAGE);
	expect_words(run, true, "");
}

/* Of a job only totals are known: the bound is lower, but never below its first process. */
static void test_totals(void **state)
{
	struct profile_totals totals = {.peak_rss = 1000,
					.max_inherited = 400,
					.max_shared_shmem = 50,
					.max_shared_file = 30};

	(void)state;
	assert_int_equal(sharing_least_of_totals(&totals), 520);
	totals.main_peak_rss = 600;
	assert_int_equal(sharing_least_of_totals(&totals), 600);
	/* It was larger before it was a job. */
	totals.main_peak_rss = 2000;
	assert_int_equal(sharing_least_of_totals(&totals), 1000);
	totals.main_peak_rss = 0;
	totals.max_inherited = 5000;
	assert_int_equal(sharing_least_of_totals(&totals), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(inherited), CASE(shmem),	    CASE(checkpoint), CASE(thinned),
		CASE(peak),	 CASE(peak_of_one), CASE(totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
