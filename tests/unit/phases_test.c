/* SPDX-License-Identifier: GPL-2.0-only */
/* Phases: what ends them, how deep they lie, and what they had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

/* The kernel resets the step's peak at a metric; the user's step must have it nevertheless. */
static void test_metric_keeps_step_peak(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "Load", 10, 10);
	metric(run, "loss", WIRE_VALUE_INT, 1, 500);
	hit(run, MAIN, WIRE_END, "Load", 10, 20);
	assert_int_equal(run->step->tree.step_peak, 500 * RECORDS_PAGE);
	assert_int_equal(phase(run, 1)->peak_rss, 500 * RECORDS_PAGE);
	hit(run, MAIN, WIRE_FINISH, "", 10, 30);
	assert_int_equal(run->step->tree.step_peak, 30 * RECORDS_PAGE);
}

/* end() closes the youngest of its name in its thread; what began later inside stays open. */
static void test_nesting(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "A", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "B", 20, 30);
	hit(run, MAIN, WIRE_BEGIN, "A", 25, 25);
	hit(run, CHILD, WIRE_BEGIN, "A", 25, 25);
	assert_string_equal(profile_open_phase(run->p), "A");
	hit(run, MAIN, WIRE_END, "A", 40, 70); /* the inner */
	hit(run, MAIN, WIRE_END, "A", 15, 50); /* the outer; B goes on */
	hit(run, MAIN, WIRE_END, "B", 12, 16);
	finish(run);

	assert_int_equal(phase_count(run), 4);
	assert_int_equal(phase(run, 0)->depth, 0);
	assert_int_equal(phase(run, 1)->depth, 1);
	assert_int_equal(phase(run, 2)->depth, 2);
	assert_int_equal(phase(run, 3)->depth, 0);
	assert_int_equal(phase(run, 0)->end_ns - START_NS, 5 * MS);
	assert_int_equal(phase(run, 1)->end_ns - START_NS, 6 * MS);
	assert_int_equal(phase(run, 2)->end_ns - START_NS, 4 * MS);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(phase(run, i)->peak_rss, 70 * RECORDS_PAGE);
	assert_int_equal(phase(run, 0)->start_rss, 10 * RECORDS_PAGE);
	assert_int_equal(phase(run, 0)->end_rss, 15 * RECORDS_PAGE);
	assert_true(phase(run, 1)->closed);
	assert_false(phase(run, 3)->closed);
	assert_int_equal(profile_losses(run->p)->unclosed_phases, 1);
}

static void hit_numbered(struct run *run, enum wire_what what, const char *name, uint64_t number)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, run->now_ns, MAIN, name);
	r.cp.value_state = WIRE_VALUE_PHASE;
	r.cp.value = number;
	run->now_ns += MS;
	feed(run, &r);
}

/* A phase with a number is ended by that number: not by its name, and not by a later namesake. */
static void test_numbers_come_before_names(void **state)
{
	struct run *run = *state;

	hit_numbered(run, WIRE_BEGIN, "read m", 1);
	hit_numbered(run, WIRE_BEGIN, "read m", 2);
	hit(run, MAIN, WIRE_END, "read m", 10, 10);
	hit_numbered(run, WIRE_END, "read m", 1);
	hit_numbered(run, WIRE_END, "read m", 2);
	finish(run);

	assert_int_equal(phase_count(run), 2);
	assert_int_equal(phase(run, 0)->end_ns - START_NS, 3 * MS);
	assert_int_equal(phase(run, 1)->end_ns - START_NS, 4 * MS);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 1);
}

/* Threads nest each for itself, also under equal names; an end elsewhere closes what there is. */
static void test_threads(void **state)
{
	struct run *run = *state;
	struct record_who other = MAIN, third = MAIN;

	other.tid++;
	third.tid += 2;
	hit(run, MAIN, WIRE_BEGIN, "A", 10, 10);
	hit(run, other, WIRE_BEGIN, "A", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "B", 10, 10);
	hit(run, MAIN, WIRE_END, "B", 10, 10);
	hit(run, MAIN, WIRE_END, "A", 10, 10);
	hit(run, third, WIRE_END, "A", 10, 10); /* what another thread began */
	finish(run);

	assert_int_equal(phase_count(run), 3);
	assert_int_equal(phase(run, 0)->tid, MAIN.tid);
	assert_int_equal(phase(run, 0)->end_ns - START_NS, 4 * MS);
	assert_int_equal(phase(run, 1)->tid, other.tid);
	assert_int_equal(phase(run, 1)->depth, 0);
	assert_int_equal(phase(run, 1)->end_ns - START_NS, 5 * MS);
	assert_int_equal(phase(run, 2)->depth, 1);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 0);
	assert_int_equal(profile_losses(run->p)->unclosed_phases, 0);
}

/* A phase has the peaks of its own time only, also with others that overlap it. */
static void test_peaks_of_overlapping_phases(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "A", 10, 900);
	hit(run, MAIN, WIRE_BEGIN, "B", 10, 40);
	hit(run, MAIN, WIRE_END, "A", 10, 50);
	hit(run, MAIN, WIRE_BEGIN, "C", 10, 20);
	hit(run, MAIN, WIRE_END, "B", 10, 30);
	hit(run, MAIN, WIRE_END, "C", 10, 80);
	finish(run);
	assert_int_equal(phase(run, 0)->peak_rss, 50 * RECORDS_PAGE);
	assert_int_equal(phase(run, 1)->peak_rss, 50 * RECORDS_PAGE);
	assert_int_equal(phase(run, 2)->peak_rss, 80 * RECORDS_PAGE);
}

/* An end without a begin in its process is a row all the same, and is counted. */
static void test_unmatched_end(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "A", 10, 10);
	hit(run, CHILD, WIRE_END, "A", 10, 10);
	assert_string_equal(run->step->step, "A End");
	hit(run, MAIN, WIRE_END, "B", 10, 10);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 2);
	assert_string_equal(profile_open_phase(run->p), "A");
}

/* The same tgid later is another process: its end() closes nothing of the first. */
static void test_reused_tgid(void **state)
{
	struct run *run = *state;
	const struct record_who later = {.tgid = MAIN.tgid, .tid = MAIN.tid, .started_ns = 99};

	hit(run, MAIN, WIRE_BEGIN, "A", 10, 10);
	hit(run, later, WIRE_END, "A", 10, 10);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 1);
	finish(run);
	assert_int_equal(profile_totals(run->p)->processes, 2);
}

/* Phases beyond the depth are dropped with their ends, and leave the others as they are. */
static void test_depth_is_bounded(void **state)
{
	struct run *run = *state;
	char name[16];

	for (int i = 0; i < PROFILE_MAX_DEPTH + 5; i++) {
		snprintf(name, sizeof(name), "%d", i);
		hit(run, MAIN, WIRE_BEGIN, name, 10, 10);
	}
	for (int i = PROFILE_MAX_DEPTH + 4; i >= 0; i--) {
		snprintf(name, sizeof(name), "%d", i);
		hit(run, MAIN, WIRE_END, name, 10, 10);
	}
	finish(run);
	assert_int_equal(phase_count(run), PROFILE_MAX_DEPTH);
	assert_int_equal(profile_losses(run->p)->dropped_phases, 5);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 0);
	assert_int_equal(profile_losses(run->p)->unclosed_phases, 0);
}

/* Phases beyond the number kept are dropped, too. A phase that was open before still ends. */
static void test_phases_are_bounded(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "Train", 10, 10);
	for (int i = 0; i < PROFILE_MAX_PHASES; i++) {
		hit(run, MAIN, WIRE_BEGIN, "Layer", 10, 10);
		hit(run, MAIN, WIRE_END, "Layer", 10, 10);
	}
	hit(run, MAIN, WIRE_MARK, "Done", 10, 10);
	hit(run, MAIN, WIRE_END, "Train", 10, 11);
	finish(run);
	assert_int_equal(phase_count(run), PROFILE_MAX_PHASES);
	assert_true(phase(run, 0)->closed);
	assert_int_equal(phase(run, 0)->peak_rss, 11 * RECORDS_PAGE);
	/* A layer and the gap of the mark. */
	assert_int_equal(profile_losses(run->p)->dropped_phases, 2);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 0);
}

/* Marks name gaps: from the start to the first, from each to the next, from the last to the end. */
static void test_gaps(void **state)
{
	struct run *run = *state;
	static const char *const from[] = {"Start", "Loaded", "Saved"};
	static const char *const to[] = {"Loaded", "Saved", "End"};
	static const uint64_t peaks[] = {60, 70, 25};
	size_t at = 0;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "Load", 20, 60);
	hit(run, CHILD, WIRE_MARK, "Loaded", 30, 35);
	hit(run, MAIN, WIRE_END, "Load", 20, 70);
	hit(run, MAIN, WIRE_MARK, "Saved", 5, 22);
	hit(run, MAIN, WIRE_FINISH, "", 1, 25);
	finish(run);
	assert_int_equal(phase_count(run), 4);
	for (size_t i = 0; i < 4; i++) {
		if (phase(run, i)->kind == PROFILE_PHASE_PAIR)
			continue;
		assert_string_equal(phase(run, i)->name, from[at]);
		assert_string_equal(phase(run, i)->to, to[at]);
		assert_int_equal(phase(run, i)->peak_rss, peaks[at] * RECORDS_PAGE);
		assert_true(phase(run, i)->closed);
		at++;
	}
	assert_int_equal(at, 3);
	assert_int_equal(phase(run, 3)->end_ns, START_NS + 5 * MS);
}

/* Without a mark there are no gaps, and the pairs are all that is left. */
static void test_no_gap_without_marks(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "Load", 20, 60);
	hit(run, MAIN, WIRE_END, "Load", 30, 35);
	finish(run);
	assert_int_equal(phase_count(run), 1);
	assert_string_equal(phase(run, 0)->name, "Load");
	/* The 60 were before it began. */
	assert_int_equal(phase(run, 0)->peak_rss, 35 * RECORDS_PAGE);
}

/* What a phase used is the difference between its end and its begin. */
static void test_phase_usage(void **state)
{
	struct run *run = *state;
	union record r;

	record_checkpoint(&r, WIRE_BEGIN, 0, START_NS, MAIN, "Load");
	r.cp.tree.usage = (struct wire_usage){
		.rchar = 100, .extra_read = 10, .wchar = 7, .read_bytes = 50, .cpu_ns = 5};
	feed(run, &r);
	record_checkpoint(&r, WIRE_END, 1, START_NS + MS, MAIN, "Load");
	r.cp.tree.usage = (struct wire_usage){.rchar = 300,
					      .extra_read = 15,
					      .wchar = 7,
					      .extra_write = 3,
					      .read_bytes = 80,
					      .write_bytes = 9,
					      .cpu_ns = 25};
	feed(run, &r);
	assert_int_equal(run->step->tree_usage.io_read, 315);
	assert_int_equal(phase(run, 0)->usage.io_read, 205);
	assert_int_equal(phase(run, 0)->usage.io_write, 3);
	assert_int_equal(phase(run, 0)->usage.disk_read, 30);
	assert_int_equal(phase(run, 0)->usage.disk_write, 9);
	assert_int_equal(phase(run, 0)->usage.cpu_ns, 20);
}

/* Names are matched by their bytes: what is shown alike need not be the same. */
static void test_names_match_as_given(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_BEGIN, "a\xff", 10, 10);
	hit(run, MAIN, WIRE_END, "a\xfe", 10, 10);
	assert_int_equal(profile_losses(run->p)->unmatched_ends, 1);
	hit(run, MAIN, WIRE_END, "a\xff", 10, 10);
	assert_true(phase(run, 0)->closed);
	assert_string_equal(phase(run, 0)->name, "a\xef\xbf\xbd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(metric_keeps_step_peak),
		CASE(nesting),
		CASE(numbers_come_before_names),
		CASE(threads),
		CASE(peaks_of_overlapping_phases),
		CASE(unmatched_end),
		CASE(reused_tgid),
		CASE(depth_is_bounded),
		CASE(phases_are_bounded),
		CASE(gaps),
		CASE(no_gap_without_marks),
		CASE(phase_usage),
		CASE(names_match_as_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
