/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes: what each record says of them, and what is left where records are lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

/* The exit of the last target was lost, so the loader tells the end. It knows the process that has
 * gone by its number alone. That makes no other process. */
static void test_end_of_a_process_that_has_gone(void **state)
{
	struct run *run = *state;
	const struct record_who gone = {.tgid = MAIN.tgid, .tid = MAIN.tgid};
	const struct record_who reused = {.tgid = MAIN.tgid, .tid = MAIN.tid, .started_ns = 9};

	process_event(run, WIRE_FORK, MAIN, 50, WIRE_PROCESS_TARGET, 10);
	hit(run, MAIN, WIRE_START, "", 10, 10);
	process_event(run, WIRE_FORK, CHILD, MAIN.tgid, 0, 5);
	process_event(run, WIRE_FORK, reused, CHILD.tgid, 0, 5);
	hit(run, gone, WIRE_FINISH, "", 0, 20);
	finish(run);
	assert_int_equal(process_count(run), 3);
	assert_int_equal(process(run, 0)->ppid, 50);
	assert_int_equal(process(run, 0)->memory.peak, 10 * RECORDS_PAGE);
	assert_int_equal(run->step->tgid, MAIN.tgid);
}

/* If nothing else is known of the process, the end makes its entry. */
static void test_end_of_an_unknown(void **state)
{
	struct run *run = *state;
	const struct record_who gone = {.tgid = MAIN.tgid, .tid = MAIN.tgid};

	hit(run, gone, WIRE_FINISH, "", 0, 20);
	finish(run);
	assert_int_equal(process_count(run), 1);
	assert_int_equal(process(run, 0)->tgid, MAIN.tgid);
}

/* Without its fork, any other record makes the entry, with what it knows. */
static void test_lost_forks(void **state)
{
	static const enum wire_kind kinds[] = {WIRE_EXEC, WIRE_EXIT};
	struct run *run = *state;
	union record r;

	record_point(&r, run->now_ns, CHILD, 40, 40);
	feed(run, &r);
	assert_int_equal(process_count(run), 0);
	hit(run, CHILD, WIRE_MARK, "one", 30, 30);
	assert_int_equal(process_count(run), 1);
	assert_string_equal(process(run, 0)->comm, "quantize");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		process_event(run, kinds[i], CHILD, MAIN.tgid, 0, 30);
		assert_int_equal(process_count(run), 1);
		assert_int_equal(process(run, 0)->ppid, MAIN.tgid);
	}
	assert_int_equal(process(run, 0)->end_ns, run->now_ns - MS);
}

static bool is_main(void *context, const struct profile_process *process)
{
	(void)context;
	return process->tgid == MAIN.tgid;
}

/* A process that has gone without a record is marked, until the record comes. */
static void test_lost_exits(void **state)
{
	struct run *run = *state;
	const struct record_who third = {.tgid = 102, .tid = 102, .started_ns = 3};

	process_event(run, WIRE_FORK, MAIN, 50, WIRE_PROCESS_TARGET, 10);
	process_event(run, WIRE_FORK, CHILD, MAIN.tgid, 0, 10);
	process_event(run, WIRE_FORK, third, MAIN.tgid, 0, 10);
	profile_mark_gone(run->p, is_main, NULL);
	assert_int_equal(process(run, 0)->flags, WIRE_PROCESS_TARGET);
	assert_int_equal(process(run, 1)->flags, WIRE_PROCESS_EXIT_LOST);
	assert_int_equal(process(run, 2)->flags, WIRE_PROCESS_EXIT_LOST);
	process_event(run, WIRE_EXIT, third, MAIN.tgid, 0, 10);
	assert_int_equal(process(run, 2)->flags, 0);
	assert_int_equal(process(run, 1)->end_ns, 0);
}

/* The tree has what any of its processes has, although a record was lost. What a process comes to
 * after the end does not belong to the run. */
static void test_no_process_is_above_the_tree(void **state)
{
	struct run *run = *state;

	process_event(run, WIRE_FORK, MAIN, 50, WIRE_PROCESS_TARGET, 10);
	hit(run, MAIN, WIRE_START, "", 10, 10);
	process_event(run, WIRE_EXEC, MAIN, 50, WIRE_PROCESS_TARGET, 70);
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	process_event(run, WIRE_EXIT, MAIN, 50, WIRE_PROCESS_TARGET, 500);
	finish(run);
	assert_int_equal(profile_totals(run->p)->main_peak_rss, 70 * RECORDS_PAGE);
	assert_int_equal(profile_totals(run->p)->peak_rss, 70 * RECORDS_PAGE);
	assert_int_equal(process(run, 0)->end_ns, run->now_ns - MS);
}

static void hugetlb_hit(struct run *run, enum wire_what what, uint64_t tree, uint64_t own)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, run->now_ns, MAIN, "");
	record_memory(&r, 10, 10, 10);
	r.cp.tree.memory.hugetlb = tree;
	r.cp.own.memory.hugetlb = own;
	run->now_ns += MS;
	feed(run, &r);
	assert_int_equal(run->step->tree.hugetlb, tree * RECORDS_PAGE);
}

static void hugetlb_event(struct run *run, enum wire_kind kind, struct record_who who,
			  uint64_t pages)
{
	union record r;

	record_process(&r, kind, run->now_ns, who, 1, "", 0);
	r.process.memory.hugetlb = pages;
	run->now_ns += MS;
	feed(run, &r);
}

/* hugetlb memory is not in RSS. Its peak is the highest seen, of the tree or of one process. */
static void test_hugetlb(void **state)
{
	struct run *run = *state;

	hugetlb_event(run, WIRE_FORK, MAIN, 0);
	hugetlb_hit(run, WIRE_START, 0, 0);
	hugetlb_event(run, WIRE_FORK, CHILD, 512);
	hugetlb_hit(run, WIRE_MARK, 1536, 1024);
	assert_int_equal(run->step->tree.rss, 10 * RECORDS_PAGE);
	hugetlb_hit(run, WIRE_MARK, 512, 0);
	assert_int_equal(process(run, 0)->memory.hugetlb, 0);
	assert_int_equal(process(run, 0)->memory.peak_hugetlb, 1024 * RECORDS_PAGE);
	hugetlb_event(run, WIRE_EXIT, CHILD, 2048);
	assert_int_equal(process(run, 1)->memory.hugetlb, 2048 * RECORDS_PAGE);
	finish(run);
	assert_int_equal(profile_totals(run->p)->peak_hugetlb, 2048 * RECORDS_PAGE);
	assert_int_equal(profile_totals(run->p)->peak_rss, 10 * RECORDS_PAGE);
}

/* A child goes on under its parent's command line until it execs; peaks never fall. */
static void test_processes(void **state)
{
	struct run *run = *state;
	const struct record_who other = {.tgid = 102, .tid = 102, .started_ns = 3};
	union record r;

	process_record(run, WIRE_EXEC, MAIN, 1, "python\0quant.py", 16, 50);
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 5);
	process_record(run, WIRE_FORK, other, MAIN.tgid, "", 0, 5);
	assert_string_equal(process(run, 0)->cmdline, "python quant.py");
	assert_string_equal(process(run, 1)->cmdline, "python quant.py");
	process_record(run, WIRE_EXEC, CHILD, MAIN.tgid, "ls\0-l", 6, 2);
	assert_string_equal(process(run, 1)->cmdline, "ls -l");
	assert_int_equal(process(run, 1)->memory.peak, 5 * RECORDS_PAGE);
	assert_int_equal(process(run, 1)->memory.rss, 2 * RECORDS_PAGE);
	assert_int_equal(process(run, 1)->ppid, MAIN.tgid);

	record_process(&r, WIRE_EXIT, run->now_ns, CHILD, MAIN.tgid, "", 0);
	r.process.exit_code = 9;
	feed(run, &r);
	assert_int_equal(process(run, 1)->end_ns, run->now_ns);
	/* Again, with later numbers. */
	record_process(&r, WIRE_EXIT, run->now_ns + 1, CHILD, MAIN.tgid, "", 0);
	r.process.exit_code = 11;
	r.process.usage.cpu_ns = 77;
	feed(run, &r);
	assert_int_equal(process(run, 1)->exit_code, 11);
	assert_int_equal(process(run, 1)->usage.cpu_ns, 77);
	assert_string_equal(process(run, 1)->comm, "quantize");
	/* A checkpoint that was overtaken changes nothing. */
	hit(run, CHILD, WIRE_MARK, "late", 1000, 1000);
	assert_int_equal(process(run, 1)->usage.cpu_ns, 77);
	finish(run);
	assert_int_equal(profile_totals(run->p)->processes, 3);
}

/* The first record creates the process, so a lost fork costs only its time. */
static void test_lost_fork(void **state)
{
	struct run *run = *state;
	const struct record_who other = {.tgid = 102, .tid = 102, .started_ns = 3};

	hit(run, MAIN, WIRE_MARK, "m", 30, 30);
	process_record(run, WIRE_EXEC, CHILD, MAIN.tgid, "ls", 3, 2);
	process_record(run, WIRE_EXIT, other, MAIN.tgid, "", 0, 4);
	assert_int_equal(process(run, 0)->memory.rss, 30 * RECORDS_PAGE);
	assert_string_equal(process(run, 0)->comm, "quantize");
	assert_null(process(run, 0)->cmdline);
	assert_string_equal(process(run, 1)->cmdline, "ls");
	assert_int_equal(process(run, 2)->memory.peak, 4 * RECORDS_PAGE);
	/* The fork that comes after its exec fills in nothing but what is missing. */
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 2);
	assert_string_equal(process(run, 1)->cmdline, "ls");
}

/* The fork's record may come after its exec's. The program is then known better than by what the
 * parent ran. */
static void test_fork_after_its_exec(void **state)
{
	struct run *run = *state;
	const struct record_who bare = {.tgid = 102, .tid = 102, .started_ns = 3};

	process_record(run, WIRE_EXEC, MAIN, 1, "python quant.py", 15, 50);
	process_record(run, WIRE_EXEC, CHILD, MAIN.tgid, "ls", 2, 2);
	process_record(run, WIRE_FORK, CHILD, MAIN.tgid, "", 0, 2);
	assert_string_equal(process(run, 1)->cmdline, "ls");
	/* An exec without arguments is no reason to keep the parent's. */
	process_record(run, WIRE_FORK, bare, MAIN.tgid, "", 0, 2);
	process_record(run, WIRE_EXEC, bare, MAIN.tgid, "", 0, 2);
	assert_null(process(run, 2)->cmdline);
}

/* The main process is the first that the user named, and no other. */
static void test_main_process(void **state)
{
	struct run *run = *state;
	union record r;

	process_record(run, WIRE_FORK, CHILD, 1, "", 0, 500);
	record_process(&r, WIRE_FORK, run->now_ns, MAIN, 1, "", 0);
	r.process.flags = WIRE_PROCESS_TARGET;
	r.process.memory.peak = 70;
	feed(run, &r);
	record_process(&r, WIRE_EXIT, run->now_ns, MAIN, 1, "", 0);
	feed(run, &r);
	finish(run);
	assert_int_equal(profile_totals(run->p)->main_peak_rss, 70 * RECORDS_PAGE);
}

/* Shared memory is counted while two processes have memory of their own. */
static void test_shared_memory(void **state)
{
	struct run *run = *state;
	union record r;

	process_record(run, WIRE_EXEC, MAIN, 1, "a", 2, 1);
	record_point(&r, run->now_ns, MAIN, 10, 10);
	r.point.tree_shmem = 900;
	feed(run, &r);
	record_process(&r, WIRE_FORK, run->now_ns, CHILD, MAIN.tgid, "", 0);
	r.process.flags = WIRE_PROCESS_SHARES_MM;
	feed(run, &r);
	record_point(&r, run->now_ns, MAIN, 10, 10);
	r.point.tree_shmem = 800;
	feed(run, &r);
	assert_int_equal(profile_totals(run->p)->max_shared_shmem, 0);

	process_record(run, WIRE_EXEC, CHILD, MAIN.tgid, "b", 2, 1);
	record_point(&r, run->now_ns, MAIN, 10, 10);
	r.point.tree_shmem = 300;
	r.point.tree_file = 40;
	r.point.inherited = 6;
	feed(run, &r);
	process_record(run, WIRE_EXIT, CHILD, MAIN.tgid, "", 0, 1);
	record_point(&r, run->now_ns, MAIN, 10, 10);
	r.point.tree_shmem = 700;
	feed(run, &r);
	assert_int_equal(profile_totals(run->p)->max_shared_shmem, 300 * RECORDS_PAGE);
	assert_int_equal(profile_totals(run->p)->max_shared_file, 40 * RECORDS_PAGE);
	assert_int_equal(profile_totals(run->p)->max_inherited, 6 * RECORDS_PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(end_of_a_process_that_has_gone),
		CASE(end_of_an_unknown),
		CASE(lost_forks),
		CASE(lost_exits),
		CASE(no_process_is_above_the_tree),
		CASE(hugetlb),
		CASE(processes),
		CASE(lost_fork),
		CASE(fork_after_its_exec),
		CASE(main_process),
		CASE(shared_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
