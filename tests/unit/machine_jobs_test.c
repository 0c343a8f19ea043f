/* SPDX-License-Identifier: GPL-2.0-only */
/* How a job of an audit begins and ends, and what it counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "machine_fed.h"
#include "model/job_files.h"

static void job_begins_with_first_checkpoint_and_ends_with_its_root(void **state)
{
	struct test *t = *state;
	struct profile_checkpoint row;
	const struct profile_totals *totals;

	forked(t, 100, 1, 0);
	assert_null(t->news.job);
	hit(t, WIRE_START, 100, 5, 0, "");
	assert_true(t->news.job_began);
	assert_ptr_equal(t->news.job->root, process(t, 100));
	hit(t, WIRE_BEGIN, 100, 5, 1, "Layer");
	assert_false(t->news.job_began);
	assert_string_equal(t->news.step->step, "Layer Start");
	forked(t, 101, 100, 5);
	assert_false(t->news.joins); /* the kernel side knows */
	assert_ptr_equal(machine_job_of(process(t, 101)), job(t, 0));
	hit(t, WIRE_END, 101, 5, 2, "Layer");
	hit(t, WIRE_FINISH, 100, 5, 3, "");
	assert_true(t->news.job_ended);
	exited(t, 100, 5);
	assert_false(t->news.job_is_over); /* a child of it is alive */
	exited(t, 101, 5);
	assert_true(t->news.job_is_over);
	assert_int_equal(t->news.job->index, 5);

	assert_int_equal(n_jobs(t), 1);
	assert_int_equal(job(t, 0)->processes, 2);
	assert_int_equal(job(t, 0)->alive, 0);
	assert_int_equal(job(t, 0)->n_rows, 4);
	machine_row(job(t, 0), 2, &row);
	assert_string_equal(row.step, "Layer End");
	assert_int_equal(row.tgid, 101);
	assert_int_equal(row.tree.rss, 12 * RECORDS_PAGE);
	assert_int_equal(row.tree_usage.io_write, 2000);
	totals = profile_totals(job(t, 0)->profile);
	assert_int_equal(totals->peak_rss, 13 * RECORDS_PAGE);
	assert_true(totals->main_peak_known);
	assert_int_equal(totals->main_peak_rss, 13 * RECORDS_PAGE);
	assert_int_equal(totals->usage.io_write, 3000);
}

/* A process that has used `written`, and had `peak` pages. */
static void tell(struct test *t, uint32_t tgid, uint32_t job, uint64_t written, uint64_t peak)
{
	union record r;

	record_process(&r, WIRE_EXEC, t->now_ns, who(tgid), 1, "", 0);
	r.h.job = (uint16_t)job;
	r.process.usage.wchar = written;
	r.process.memory.peak = peak;
	feed(t, &r);
}

/* The root's START, when it has used and had as much. */
static void start_job(struct test *t, uint32_t tgid, uint32_t job, uint64_t written, uint64_t peak)
{
	union record r;

	record_checkpoint(&r, WIRE_START, 0, t->now_ns, who(tgid), "");
	r.h.job = (uint16_t)job;
	record_memory(&r, 10, 10, peak);
	r.cp.own.usage.wchar = written;
	feed(t, &r);
}

static void job_counts_from_its_beginning(void **state)
{
	struct test *t = *state;

	tell(t, 100, 0, 500, 90);
	start_job(t, 100, 5, 600, 90);
	assert_int_equal(machine_usage_in_job(process(t, 100)).io_write, 0);
	tell(t, 100, 5, 800, 90);
	assert_int_equal(machine_usage_in_job(process(t, 100)).io_write, 200);
	forked(t, 101, 100, 5); /* has used 100 */
	assert_int_equal(machine_usage_in_job(process(t, 101)).io_write, 100);
	exited(t, 100, 5);
	assert_false(machine_job_runs(job(t, 0)));
	tell(t, 101, 5, 150, 1);
	exited(t, 101, 5);
	/* No WIRE_FINISH has told. */
	assert_true(t->news.job_ended);
	assert_int_equal(job(t, 0)->usage.io_write, 100);
	assert_int_equal(profile_totals(job(t, 0)->profile)->usage.io_write, 100);
}

static void highest_of_the_root_is_since_the_job_began_or_not_known(void **state)
{
	struct test *t = *state;

	for (uint32_t i = 0; i < 3; i++) {
		forked(t, 100 + i, 1, 0);
		start_job(t, 100 + i, 1 + i, 0, 90);
	}
	hit(t, WIRE_MARK, 100, 1, 1, "");
	hit(t, WIRE_FINISH, 100, 1, 2, "");
	assert_true(profile_totals(job(t, 0)->profile)->main_peak_known);
	assert_int_equal(profile_totals(job(t, 0)->profile)->main_peak_rss, 12 * RECORDS_PAGE);
	/* Its child's are not its own; and one that was lost may have had more. */
	forked(t, 110, 101, 2);
	hit(t, WIRE_MARK, 110, 2, 5, "");
	hit(t, WIRE_FINISH, 101, 2, 1, "");
	assert_int_equal(profile_totals(job(t, 1)->profile)->main_peak_rss, 11 * RECORDS_PAGE);
	assert_false(profile_totals(job(t, 1)->profile)->main_peak_known);
	/* What the root had since its last checkpoint, no record says; its end does. */
	for (uint32_t i = 0; i < 2; i++) {
		forked(t, 103 + i, 1, 0);
		start_job(t, 103 + i, 4 + i, 0, 90);
		forked(t, 112 + i, 103 + i, 4 + i);
		if (i)
			exited(t, 103 + i, 4 + i);
		hit(t, WIRE_FINISH, 112 + i, 4 + i, 1, "");
		assert_int_equal(profile_totals(job(t, 3 + i)->profile)->main_peak_known, i);
	}
	/* More than ever before. */
	forked(t, 111, 102, 3);
	hit(t, WIRE_MARK, 111, 3, 1, "");
	tell(t, 102, 3, 0, 95);
	hit(t, WIRE_FINISH, 102, 3, 2, "");
	assert_true(profile_totals(job(t, 2)->profile)->main_peak_known);
	assert_int_equal(profile_totals(job(t, 2)->profile)->main_peak_rss, 95 * RECORDS_PAGE);
}

static void processes_that_outlive_a_job_are_counted_when_it_ends(void **state)
{
	struct test *t = *state;

	for (uint32_t i = 0; i < 2; i++) {
		forked(t, 100 + i, 1, 0);
		hit(t, WIRE_START, 100 + i, 1 + i, 0, "");
		forked(t, 110 + i, 100 + i, 1 + i);
		hit(t, WIRE_FINISH, 100 + i, 1 + i, 1, "");
	}
	exited(t, 100, 1);
	exited(t, 110, 1);
	assert_int_equal(job(t, 0)->outliving, 1);
	assert_false(machine_job_runs(job(t, 0)));
	/* The audit has ended it, not its root. */
	assert_int_equal(job(t, 1)->outliving, 1);
	assert_true(machine_job_runs(job(t, 1)));
}

/* Another thread of the root may fork before the start is said. */
static void job_whose_end_is_not_heard_of_ends_with_its_last_process(void **state)
{
	struct test *t = *state;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 5, 0, "");
	assert_false(t->news.job_ended);
	exited(t, 100, 5);
	assert_true(t->news.job_ended);
	assert_true(t->news.job_is_over);
	assert_int_equal(t->news.job->end_ns, t->now_ns - MS);
}

static void child_may_be_heard_of_before_its_job(void **state)
{
	struct test *t = *state;

	forked(t, 100, 1, 0);
	forked(t, 101, 100, 9);
	exited(t, 101, 9);
	assert_false(t->news.job_is_over);
	hit(t, WIRE_START, 100, 9, 0, "");
	assert_true(t->news.job_began);
	hit(t, WIRE_FINISH, 100, 9, 1, "");
	exited(t, 100, 9);
	assert_true(t->news.job_is_over);
	assert_int_equal(n_jobs(t), 1);
	assert_int_equal(job(t, 0)->processes, 2);
}

/* An audit that ends asks for the ends of its jobs: the last process of one was exiting just then.
 */
static void end_that_is_told_after_the_last_exit_begins_no_job(void **state)
{
	struct test *t = *state;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 5, 0, "");
	exited(t, 100, 5);
	assert_true(t->news.job_is_over);
	hit(t, WIRE_FINISH, 100, 5, 1, "");
	assert_int_equal(n_jobs(t), 1);
}

static void files_that_may_have_been_removed_are_counted(void **state)
{
	static const uint32_t flags[] = {WIRE_STORED_GONE, WIRE_STORED_GONE, WIRE_STORED_DELETED,
					 0};
	struct test *t = *state;
	struct job_files *files = calloc(1, sizeof(*files));
	const struct job_names none = {0};

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 5, 0, "");
	machine_count_files(job(t, 0));
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		const struct wire_stored sums = {
			.file = {.device = 1, .inode = i + 1}, .written = 1, .flags = flags[i]};

		assert_int_equal(job_files_add(files, &none, &sums), 0);
	}
	machine_set_files(t->m, job(t, 0), files);
	assert_int_equal(machine_losses(t->m).unsure_removals, 2);
	assert_int_equal(job(t, 0)->files_are, MACHINE_FILES_KNOWN);
}

int main(void)
{
#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(job_begins_with_first_checkpoint_and_ends_with_its_root),
		test(job_counts_from_its_beginning),
		test(highest_of_the_root_is_since_the_job_began_or_not_known),
		test(processes_that_outlive_a_job_are_counted_when_it_ends),
		test(job_whose_end_is_not_heard_of_ends_with_its_last_process),
		test(child_may_be_heard_of_before_its_job),
		test(end_that_is_told_after_the_last_exit_begins_no_job),
		test(files_that_may_have_been_removed_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
