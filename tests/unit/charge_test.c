/* SPDX-License-Identifier: GPL-2.0-only */
/* The charge of the memory cgroup: of rows, and the peaks of phases and of the run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

static void charged(struct run *run, struct record_who who, enum wire_what what, const char *name,
		    uint64_t now, uint64_t most)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, run->now_ns, who, name);
	record_memory(&r, 10, 10, 10);
	r.cp.charged = now;
	r.cp.most_charged = most;
	run->now_ns += MS;
	feed(run, &r);
}

static void peak_is(const struct profile_charge_peak *peak, uint64_t pages, bool at_least)
{
	assert_int_equal(peak->bytes, pages * RECORDS_PAGE);
	assert_int_equal(peak->at_least, at_least);
}

/* What the kernel has seen is exact where it rose; else there is what checkpoints saw, inside too.
 */
static void test_phases(void **state)
{
	struct run *run = *state;

	charged(run, MAIN, WIRE_START, "", 5, 5);
	charged(run, MAIN, WIRE_BEGIN, "A", 10, 10);
	charged(run, MAIN, WIRE_BEGIN, "inner", 30, 90);
	assert_int_equal(run->step->charge.now, 30 * RECORDS_PAGE);
	charged(run, MAIN, WIRE_END, "inner", 20, 90);
	charged(run, MAIN, WIRE_END, "A", 15, 90);
	charged(run, MAIN, WIRE_BEGIN, "B", 20, 90);
	charged(run, MAIN, WIRE_MARK, "mark", 40, 90);
	charged(run, MAIN, WIRE_END, "B", 30, 90);
	charged(run, MAIN, WIRE_FINISH, "", 8, 91);
	finish(run);
	assert_int_equal(phase_count(run), 5); /* and two gaps */
	peak_is(&phase(run, 0)->charge_peak, 90, false);
	peak_is(&phase(run, 1)->charge_peak, 90, false);
	assert_int_equal(phase(run, 1)->charge.now, 15 * RECORDS_PAGE);
	peak_is(&phase(run, 2)->charge_peak, 30, true);
	peak_is(&phase(run, 3)->charge_peak, 40, true);
	peak_is(&phase(run, 4)->charge_peak, 91, false);
	peak_is(&profile_totals(run->p)->charge_peak, 91, false);
}

/* A cgroup that was there before, and had more. */
static void test_higher_before(void **state)
{
	struct run *run = *state;

	charged(run, MAIN, WIRE_START, "", 5, 100);
	charged(run, MAIN, WIRE_MARK, "mark", 60, 100);
	charged(run, MAIN, WIRE_FINISH, "", 8, 100);
	finish(run);
	peak_is(&profile_totals(run->p)->charge_peak, 60, true);
}

/* Of another cgroup nobody says anything: what it is in is not known then, nor a peak exact. */
static void test_unknown(void **state)
{
	struct run *run = *state;

	charged(run, MAIN, WIRE_START, "", 5, 5);
	charged(run, MAIN, WIRE_BEGIN, "A", 10, 20);
	charged(run, CHILD, WIRE_BEGIN, "elsewhere", 0, 0);
	assert_int_equal(run->step->charge.now, 0);
	charged(run, CHILD, WIRE_END, "elsewhere", 0, 0);
	charged(run, MAIN, WIRE_END, "A", 10, 30);
	charged(run, CHILD, WIRE_FINISH, "", 0, 0);
	finish(run);
	peak_is(&phase(run, 0)->charge_peak, 30, false);
	peak_is(&phase(run, 1)->charge_peak, 0, false);
	peak_is(&profile_totals(run->p)->charge_peak, 30, true);
}

/* The run, or what was told of it, ends in a phase. */
static void test_open_phase(void **state)
{
	struct run *run = *state;

	charged(run, MAIN, WIRE_START, "", 5, 5);
	charged(run, MAIN, WIRE_BEGIN, "A", 10, 20);
	charged(run, MAIN, WIRE_FINISH, "", 15, 40);
	finish(run);
	peak_is(&phase(run, 0)->charge_peak, 40, false);
}

static void test_without_an_end(void **state)
{
	struct run *run = *state;

	charged(run, MAIN, WIRE_START, "", 5, 5);
	charged(run, MAIN, WIRE_BEGIN, "A", 10, 20);
	finish(run);
	peak_is(&phase(run, 0)->charge_peak, 0, false);
	peak_is(&profile_totals(run->p)->charge_peak, 20, true);
}

/* What it is made of is of one row. What is no cache counts for the run, at its most. */
static void test_parts(void **state)
{
	const struct profile_charged more = {.anon = 50, .shmem = 5, .file = 1000, .kernel = 7};
	const struct profile_charged less = {.anon = 1, .shmem = 1, .file = 2000, .kernel = 1};
	struct run *run = *state;

	charged(run, MAIN, WIRE_START, "", 5, 5);
	profile_charged(run->p, &more);
	charged(run, MAIN, WIRE_MARK, "A", 10, 20);
	assert_int_equal(run->step->charged.kernel, 7);
	charged(run, MAIN, WIRE_MARK, "B", 10, 20);
	assert_int_equal(run->step->charged.kernel, 0);
	profile_charged(run->p, &less);
	charged(run, MAIN, WIRE_MARK, "C", 10, 20);
	assert_int_equal(run->step->charged.file, 2000);
	finish(run);
	assert_int_equal(profile_totals(run->p)->max_charged, 62);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(phases),	  CASE(higher_before),	CASE(unknown),
		CASE(open_phase), CASE(without_an_end), CASE(parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
