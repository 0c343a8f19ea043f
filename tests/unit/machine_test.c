/* SPDX-License-Identifier: GPL-2.0-only */
/* The model of an audit, fed with records as the kernel side sends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine_fed.h"

struct joined {
	uint32_t tgids[8], jobs[8];
	size_t n;
};

static void note_join(void *context, const struct profile_process *process,
		      const struct machine_job *job)
{
	struct joined *joined = context;

	assert_true(joined->n < 8);
	joined->tgids[joined->n] = process->tgid;
	joined->jobs[joined->n++] = job->index;
}

static void descendants_from_before_join(void **state)
{
	struct test *t = *state;
	struct joined joined = {.n = 0};

	/* As a walk over the machine has them: children before parents, too. */
	forked(t, 102, 101, 0);
	forked(t, 101, 100, 0);
	forked(t, 100, 1, 0);
	forked(t, 103, 100, 0);
	forked(t, 104, 1, 0);
	machine_settle(t->m);
	assert_ptr_equal(machine_parent(process(t, 102)), process(t, 101));
	hit(t, WIRE_START, 100, 1, 0, "");
	machine_join_descendants(t->m, t->news.job, note_join, &joined);
	assert_int_equal(joined.n, 3);
	for (size_t i = 0; i < joined.n; i++) {
		assert_int_equal(joined.jobs[i], 1);
		assert_int_not_equal(joined.tgids[i], 104);
	}
	assert_ptr_equal(machine_job_of(process(t, 102)), job(t, 0));
	assert_null(machine_job_of(process(t, 104)));
	/* A descendant forked before the kernel side was told. */
	forked(t, 105, 102, 0);
	assert_true(t->news.joins);
	assert_ptr_equal(machine_job_of(process(t, 105)), job(t, 0));
	assert_int_equal(job(t, 0)->alive, 5);
}

static void who_loses_its_parent_stays_below_its_ancestor(void **state)
{
	struct test *t = *state;
	struct joined joined = {.n = 0};

	forked(t, 100, 1, 0);
	forked(t, 101, 100, 0);
	forked(t, 102, 101, 0);
	exited(t, 101, 0);
	assert_ptr_equal(machine_parent(process(t, 102)), process(t, 100));
	hit(t, WIRE_START, 100, 1, 0, "");
	machine_join_descendants(t->m, t->news.job, note_join, &joined);
	assert_int_equal(joined.n, 1);
	assert_int_equal(joined.tgids[0], 102);
}

static void two_jobs_have_numbers_of_their_own(void **state)
{
	struct test *t = *state;
	struct profile_checkpoint row;

	forked(t, 100, 1, 0);
	forked(t, 200, 1, 0);
	hit(t, WIRE_START, 100, 1, 0, "");
	hit(t, WIRE_START, 200, 2, 0, "");
	hit(t, WIRE_MARK, 100, 1, 1, "one");
	hit(t, WIRE_MARK, 200, 2, 5, "two"); /* four of it were lost */
	assert_int_equal(n_jobs(t), 2);
	machine_row(job(t, 0), 1, &row);
	assert_string_equal(row.step, "one");
	machine_row(job(t, 1), 1, &row);
	assert_string_equal(row.step, "two");
	assert_int_equal(machine_finish(t->m, t->now_ns), 0);
	assert_int_equal(profile_totals(job(t, 0)->profile)->peak_rss, 11 * RECORDS_PAGE);
	assert_int_equal(profile_totals(job(t, 1)->profile)->peak_rss, 15 * RECORDS_PAGE);
	assert_int_equal(machine_losses(t->m).profiles.missing_checkpoints, 4);
}

static void index_of_a_job_is_used_again(void **state)
{
	struct test *t = *state;

	for (uint32_t i = 0; i < 3; i++) {
		forked(t, 100 + i, 1, 0);
		hit(t, WIRE_START, 100 + i, 1, 0, "");
		assert_true(t->news.job_began);
		hit(t, WIRE_FINISH, 100 + i, 1, 1, "");
		exited(t, 100 + i, 1);
		assert_true(t->news.job_is_over);
	}
	assert_int_equal(n_jobs(t), 3);
	assert_int_equal(job(t, 2)->id, 3);
	assert_int_equal(job(t, 0)->n_rows, 2);
}

/* A row, and a phase, of the job that the test began as the first. */
static void assert_is_whole(const struct test *t)
{
	const struct profile_phase *phases;
	struct profile_checkpoint row;
	size_t n;

	phases = profile_phases(job(t, 0)->profile, &n);
	assert_int_equal(n, 1);
	assert_string_equal(phases[0].name, "work");
	assert_int_equal(phases[0].usage.io_write, 1000);
	assert_int_equal(job(t, 0)->n_rows, 4);
	machine_row(job(t, 0), 2, &row);
	assert_string_equal(row.step, "work End");
	assert_int_equal(row.tree.rss, 12 * RECORDS_PAGE);
	assert_int_equal(row.tree_usage.io_write, 2000);
}

static void jobs_that_have_ended_are_put_away(void **state)
{
	struct test *t = *state;
	size_t n;

	for (uint32_t i = 0; i < 2; i++) {
		if (i)
			assert_is_whole(t); /* nobody else has ended yet */
		forked(t, 100 + i, 1, 0);
		hit(t, WIRE_START, 100 + i, 1 + i, 0, "");
		hit(t, WIRE_BEGIN, 100 + i, 1 + i, 1, "work");
		hit(t, WIRE_END, 100 + i, 1 + i, 2, "work");
		hit(t, WIRE_FINISH, 100 + i, 1 + i, 3, "");
		exited(t, 100 + i, 1 + i);
	}
	profile_phases(job(t, 0)->profile, &n);
	assert_int_equal(n, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(machine_take_out(job(t, 0)), 0);
		assert_is_whole(t);
		machine_put_away(job(t, 0));
	}
}

static void metrics_stay_with_their_row(void **state)
{
	struct test *t = *state;
	struct profile_checkpoint row;
	union record r;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 1, 0, "");
	record_checkpoint(&r, WIRE_METRIC, 1, t->now_ns, who(100), "loss");
	r.h.job = 1;
	r.cp.value_state = WIRE_VALUE_UINT;
	r.cp.value = 42;
	feed(t, &r);
	assert_null(t->news.step);
	hit(t, WIRE_MARK, 100, 1, 2, "with");
	hit(t, WIRE_MARK, 100, 1, 3, "without");
	machine_row(job(t, 0), 1, &row);
	assert_int_equal(row.n_metrics, 1);
	assert_string_equal(row.metrics[0].name, "loss");
	assert_int_equal(row.metrics[0].u, 42);
	machine_row(job(t, 0), 2, &row);
	assert_int_equal(row.n_metrics, 0);
}

static void rows_and_phases_of_a_job_are_bounded(void **state)
{
	struct test *t = *state;
	struct profile_checkpoint row;
	const uint32_t many = 5000;
	char name[32];
	size_t n;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 1, 0, "");
	for (uint32_t i = 1; i <= many; i++) {
		snprintf(name, sizeof(name), "step %u", i);
		hit(t, WIRE_BEGIN, 100, 1, i, name);
	}
	hit(t, WIRE_FINISH, 100, 1, many + 1, "");
	assert_int_equal(job(t, 0)->checkpoints, many + 2);
	assert_int_equal(job(t, 0)->n_rows, MACHINE_JOB_ROWS);
	assert_int_equal(job(t, 0)->dropped_rows, many + 2 - MACHINE_JOB_ROWS);
	assert_int_equal(machine_losses(t->m).dropped_rows, many + 2 - MACHINE_JOB_ROWS);
	machine_row(job(t, 0), MACHINE_JOB_ROWS - 1, &row);
	assert_string_equal(row.step, "End");
	profile_phases(job(t, 0)->profile, &n);
	assert_true(n <= MACHINE_JOB_PHASES);
	assert_int_equal(machine_losses(t->m).profiles.dropped_phases, many - n);
	/* The totals know of all. */
	assert_int_equal(profile_totals(job(t, 0)->profile)->peak_rss, (11 + many) * RECORDS_PAGE);
}

static void one_user_leaves_room_for_others(void **state)
{
	struct test *t = *state;
	const uint32_t greedy = 200;

	for (uint32_t i = 1; i <= greedy; i++) {
		feed_as(t, WIRE_FORK, 100 + i, 1, 0, ALICE, "");
		hit(t, WIRE_START, 100 + i, i, 0, "");
		for (uint32_t row = 1; row < 1000; row++)
			hit(t, WIRE_MARK, 100 + i, i, row, "mine");
	}
	assert_true(machine_losses(t->m).dropped_rows > 0);
	feed_as(t, WIRE_FORK, 900, 1, 0, BOB, "");
	hit(t, WIRE_START, 900, greedy + 1, 0, "");
	for (uint32_t row = 1; row < 500; row++)
		hit(t, WIRE_MARK, 900, greedy + 1, row, "also mine");
	assert_int_equal(job(t, greedy)->n_rows, 500);
	assert_int_equal(job(t, greedy)->dropped_rows, 0);
}

static void ended_processes_stay_until_there_is_no_room(void **state)
{
	struct test *t = *state;
	uint64_t of_alice = 0;
	size_t n;

	machine_free(t->m);
	open_machine(t, 10);
	feed_as(t, WIRE_FORK, 50, 1, 0, BOB, "");
	feed_as(t, WIRE_EXIT, 50, 1, 0, BOB, "");
	forked(t, 60, 1, 0);
	for (uint32_t i = 100; i < 150; i++) {
		forked(t, i, 60, 0);
		exited(t, i, 0);
	}
	machine_processes(t->m, &n);
	assert_int_equal(n, 10);
	assert_int_equal(machine_alive(t->m), 1);
	assert_non_null(machine_process(t->m, 50)); /* a user who churns pushes out their own */
	assert_null(machine_process(t->m, 100));
	assert_non_null(machine_process(t->m, 149));
	assert_int_equal(machine_losses(t->m).forgotten_processes, 42);
	assert_int_equal(machine_losses(t->m).profiles.dropped_processes, 0);
	for (size_t i = 0; i < machine_n_sums(t->m); i++) {
		assert_int_equal(machine_sum(t->m, i)->uid, ALICE);
		assert_int_equal(machine_sum(t->m, i)->cgroup, 7);
		of_alice += machine_sum(t->m, i)->processes;
		assert_int_equal(machine_sum(t->m, i)->usage.io_write, 4200);
		assert_int_equal(machine_sum(t->m, i)->peak_rss, 2 * RECORDS_PAGE);
	}
	assert_int_equal(of_alice, 42);
}

static void living_processes_are_never_pushed_out(void **state)
{
	struct test *t = *state;

	machine_free(t->m);
	open_machine(t, 10);
	for (uint32_t i = 0; i < 15; i++)
		forked(t, 100 + i, 1, 0);
	assert_null(t->news.process);
	assert_int_equal(machine_alive(t->m), 10);
	assert_int_equal(machine_losses(t->m).profiles.dropped_processes, 5);
	assert_non_null(machine_process(t->m, 100));
}

static void root_of_a_job_stays(void **state)
{
	struct test *t = *state;

	machine_free(t->m);
	open_machine(t, 4);
	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 1, 0, "");
	hit(t, WIRE_FINISH, 100, 1, 1, "");
	exited(t, 100, 1);
	for (uint32_t i = 200; i < 220; i++) {
		forked(t, i, 1, 0);
		exited(t, i, 0);
	}
	assert_ptr_equal(job(t, 0)->root, process(t, 100));
}

/* A phase is told of with its process. */
static void process_with_an_open_phase_stays(void **state)
{
	struct test *t = *state;

	machine_free(t->m);
	open_machine(t, 6);
	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 1, 0, "");
	forked(t, 101, 100, 1);
	forked(t, 102, 100, 1);
	hit(t, WIRE_BEGIN, 101, 1, 1, "goes on");
	hit(t, WIRE_BEGIN, 102, 1, 2, "ends");
	hit(t, WIRE_END, 102, 1, 3, "ends");
	exited(t, 101, 1);
	exited(t, 102, 1);
	for (uint32_t i = 200; i < 220; i++) {
		forked(t, i, 1, 0);
		exited(t, i, 0);
	}
	assert_non_null(machine_process(t->m, 101));
	assert_null(machine_process(t->m, 102));
	hit(t, WIRE_FINISH, 100, 1, 4, "");
	for (uint32_t i = 220; i < 240; i++) {
		forked(t, i, 1, 0);
		exited(t, i, 0);
	}
	assert_null(machine_process(t->m, 101));
}

/* A user whose jobs are over has most ended processes, each the root of a job that is kept. They
 * keep no other process from going, so there is room for new ones. */
static void roots_of_jobs_leave_room(void **state)
{
	struct test *t = *state;
	const uint32_t jobs = 300, others = 100;

	machine_free(t->m);
	open_machine(t, jobs + others);
	for (uint32_t i = 0; i < jobs; i++) {
		forked(t, 1000 + i, 1, 0);
		hit(t, WIRE_START, 1000 + i, 1 + i, 0, "");
		hit(t, WIRE_FINISH, 1000 + i, 1 + i, 1, "");
		exited(t, 1000 + i, 1 + i);
	}
	for (uint32_t i = 0; i < 10 * others; i++) {
		feed_as(t, WIRE_FORK, 5000 + i, 1, 0, BOB, "");
		assert_non_null(t->news.process);
		feed_as(t, WIRE_EXIT, 5000 + i, 1, 0, BOB, "");
	}
	assert_int_equal(machine_losses(t->m).profiles.dropped_processes, 0);
	assert_int_equal(machine_losses(t->m).forgotten_processes, 9 * others);
	assert_ptr_equal(job(t, 0)->root, process(t, 1000));
}

/* What went wrong in a job is in the machine's figures when the job has ended. */
static void losses_of_jobs_add_up(void **state)
{
	struct test *t = *state;
	struct machine_losses losses;
	union record r;

	for (uint32_t job = 1; job <= 2; job++) {
		const uint32_t root = 100 * job;

		forked(t, root, 1, 0);
		hit(t, WIRE_START, root, job, 0, "");
		hit(t, WIRE_BEGIN, root, job, 1, "open");
		hit(t, WIRE_END, root, job, 2, "never began");
		hit(t, WIRE_MARK, root, job, 3, "\xff");
		record_checkpoint(&r, WIRE_MARK, 5, t->now_ns, who(root), "cut");
		r.h.job = (uint16_t)job;
		r.cp.name_state = WIRE_NAME_CUT;
		feed(t, &r);
		record_checkpoint(&r, WIRE_MARK, 6, t->now_ns, who(root), "");
		r.h.job = (uint16_t)job;
		r.cp.name_state = WIRE_NAME_UNREADABLE;
		feed(t, &r);
		record_checkpoint(&r, WIRE_METRIC, 7, t->now_ns, who(root), "unreadable");
		r.h.job = (uint16_t)job;
		r.cp.value_state = WIRE_VALUE_UNREADABLE;
		feed(t, &r);
		assert_int_equal(machine_losses(t->m).profiles.unclosed_phases, job - 1);
		exited(t, root, job); /* and the metric joined no row */
		losses = machine_losses(t->m);
		assert_int_equal(losses.profiles.unclosed_phases, job);
		assert_int_equal(losses.profiles.unmatched_ends, job);
		assert_int_equal(losses.profiles.invalid_utf8_names, job);
		assert_int_equal(losses.profiles.missing_checkpoints, job);
		assert_int_equal(losses.profiles.cut_names, job);
		assert_int_equal(losses.profiles.unreadable_names, job);
		assert_int_equal(losses.profiles.unreadable_metrics, job);
		assert_int_equal(losses.profiles.dropped_metrics, job);
	}
}

static void jobs_that_are_over_make_room(void **state)
{
	struct test *t = *state;
	const uint32_t many = MACHINE_JOBS + 100;

	for (uint32_t i = 0; i < many; i++) {
		const uint32_t index = 1 + i % 1000;

		forked(t, 1000 + i, 1, 0);
		hit(t, WIRE_START, 1000 + i, index, 0, "");
		hit(t, WIRE_MARK, 1000 + i, index, 1, "m");
		hit(t, WIRE_FINISH, 1000 + i, index, 2, "");
		exited(t, 1000 + i, index);
	}
	assert_int_equal(n_jobs(t), MACHINE_JOBS);
	assert_int_equal(machine_losses(t->m).forgotten_jobs, 100);
	assert_int_equal(job(t, 0)->id, 101);
	assert_null(machine_job_of(process(t, 1000)));
	/* What they kept is free again. */
	forked(t, 90000, 1, 0);
	hit(t, WIRE_START, 90000, 1, 0, "");
	for (uint32_t row = 1; row < 500; row++)
		hit(t, WIRE_MARK, 90000, 1, row, "m");
	assert_int_equal(t->news.job->dropped_rows, 0);
}

static void pid_that_is_used_again_is_another_process(void **state)
{
	struct test *t = *state;
	union record r;
	size_t n;

	forked(t, 100, 1, 0);
	exited(t, 100, 0);
	record_process(&r, WIRE_FORK, t->now_ns, (struct record_who){100, 100, 77777}, 1, "", 0);
	feed(t, &r);
	machine_processes(t->m, &n);
	assert_int_equal(n, 2);
	assert_int_equal(process(t, 100)->end_ns, 0);
	/* The exit of the first comes once more: nothing happens. */
	exited(t, 100, 0);
	assert_int_equal(machine_alive(t->m), 1);
}

static void process_may_be_heard_of_first_by_its_end(void **state)
{
	struct test *t = *state;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 3, 0, "");
	exited(t, 101, 3);
	assert_int_equal(machine_alive(t->m), 1);
	assert_int_equal(job(t, 0)->alive, 1);
	assert_int_equal(job(t, 0)->processes, 2);
}

/* Each record after the first finds the process known: it is alive once, in one place of the tree.
 */
static void process_is_met_once(void **state)
{
	struct test *t = *state;

	forked(t, 100, 1, 0);
	forked(t, 101, 100, 0);
	feed_as(t, WIRE_EXEC, 101, 100, 0, ALICE, "ls");
	assert_int_equal(machine_alive(t->m), 2);
	assert_ptr_equal(machine_child(process(t, 100)), process(t, 101));
	assert_null(machine_sibling(process(t, 101)));
	hit(t, WIRE_START, 101, 1, 0, "");
	hit(t, WIRE_FINISH, 101, 1, 1, "");
	assert_int_equal(machine_alive(t->m), 2);
	/* Growth is since it was met, not since it was last heard of. */
	assert_int_equal(machine_growth(process(t, 101)), 9 * RECORDS_PAGE);
	exited(t, 101, 1);
	assert_int_equal(machine_alive(t->m), 1);
	assert_null(machine_child(process(t, 100)));
}

static void forks_share_the_command_line(void **state)
{
	struct test *t = *state;

	feed_as(t, WIRE_EXEC, 100, 1, 0, ALICE, "python quantize.py");
	forked(t, 101, 100, 0);
	assert_ptr_equal(process(t, 100)->cmdline, process(t, 101)->cmdline);
	feed_as(t, WIRE_EXEC, 100, 1, 0, ALICE, "other");
	assert_string_equal(process(t, 101)->cmdline, "python quantize.py");
	assert_string_equal(process(t, 100)->cmdline, "other");
}

static void what_is_told_is_as_of_now(void **state)
{
	struct test *t = *state;
	union record r;

	forked(t, 100, 1, 0);
	record_process(&r, WIRE_FORK, t->now_ns, who(100), 1, "", 0);
	r.process.usage.wchar = 5000;
	r.process.memory.anon = 9;
	machine_tell(t->m, &r.process);
	assert_int_equal(process(t, 100)->usage.io_write, 5000);
	assert_int_equal(process(t, 100)->memory.rss, 9 * RECORDS_PAGE);
	/* It is heard of no sooner than by a record. */
	record_process(&r, WIRE_FORK, t->now_ns, who(101), 1, "", 0);
	machine_tell(t->m, &r.process);
	assert_null(machine_process(t->m, 101));
}

static void point_of_a_job_that_is_over_is_no_other_jobs(void **state)
{
	struct test *t = *state;
	union record r;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 1, 0, "");
	hit(t, WIRE_FINISH, 100, 1, 1, "");
	exited(t, 100, 1);
	forked(t, 200, 1, 0);
	hit(t, WIRE_START, 200, 1, 0, "");
	record_point(&r, t->now_ns, who(100), 5000, 5000);
	r.h.job = 1;
	feed(t, &r);
	assert_int_equal(machine_finish(t->m, t->now_ns), 0);
	assert_int_equal(profile_totals(job(t, 1)->profile)->peak_rss, 10 * RECORDS_PAGE);
}

/* A new mapping is news of a process and its job, and of nobody else's. */
static void mapping_is_of_its_process(void **state)
{
	struct test *t = *state;
	union record r;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 1, 0, "");
	record_header(&r, WIRE_MAPPED, sizeof(r.mapped), t->now_ns, who(100));
	feed(t, &r);
	assert_ptr_equal(t->news.process, process(t, 100));
	assert_ptr_equal(t->news.job, job(t, 0));
	assert_null(t->news.step);
	record_header(&r, WIRE_MAPPED, sizeof(r.mapped), t->now_ns, who(101));
	feed(t, &r);
	assert_null(t->news.process);
	assert_null(t->news.job);
}

static bool is_not_200(void *context, const struct profile_process *process)
{
	(void)context;
	return process->tgid != 200;
}

/* It is not counted as alive, here and in its job; and if its exit comes nevertheless, once. */
static void exit_that_was_lost_is_said(void **state)
{
	struct test *t = *state;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 1, 0, "");
	forked(t, 200, 100, 1);
	forked(t, 300, 200, 1);
	assert_int_equal(machine_alive(t->m), 3);
	machine_mark_gone(t->m, is_not_200, NULL);
	assert_int_equal(machine_alive(t->m), 2);
	assert_int_equal(job(t, 0)->alive, 2);
	assert_int_equal(process(t, 200)->flags, WIRE_PROCESS_EXIT_LOST);
	assert_false(profile_process_runs(process(t, 200)));
	assert_int_equal(machine_parent(process(t, 300))->tgid, 100);
	machine_mark_gone(t->m, is_not_200, NULL);
	exited(t, 200, 1);
	assert_int_equal(machine_alive(t->m), 2);
	assert_int_equal(job(t, 0)->alive, 2);
	assert_int_equal(process(t, 200)->flags, 0);
	assert_int_not_equal(process(t, 200)->end_ns, 0);
}

int main(void)
{
#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(descendants_from_before_join),
		test(who_loses_its_parent_stays_below_its_ancestor),
		test(two_jobs_have_numbers_of_their_own),
		test(index_of_a_job_is_used_again),
		test(jobs_that_have_ended_are_put_away),
		test(metrics_stay_with_their_row),
		test(rows_and_phases_of_a_job_are_bounded),
		test(one_user_leaves_room_for_others),
		test(ended_processes_stay_until_there_is_no_room),
		test(living_processes_are_never_pushed_out),
		test(root_of_a_job_stays),
		test(process_with_an_open_phase_stays),
		test(roots_of_jobs_leave_room),
		test(losses_of_jobs_add_up),
		test(jobs_that_are_over_make_room),
		test(pid_that_is_used_again_is_another_process),
		test(process_may_be_heard_of_first_by_its_end),
		test(process_is_met_once),
		test(forks_share_the_command_line),
		test(what_is_told_is_as_of_now),
		test(point_of_a_job_that_is_over_is_no_other_jobs),
		test(mapping_is_of_its_process),
		test(exit_that_was_lost_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
