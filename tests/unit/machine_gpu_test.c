/* SPDX-License-Identifier: GPL-2.0-only */
/* What processes and jobs of an audit hold on GPUs now, and held at most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine_fed.h"

static struct wire_header head(const struct test *t, enum wire_kind kind, uint32_t size,
			       uint32_t tgid, uint32_t job)
{
	return (struct wire_header){.kind = (uint16_t)kind,
				    .job = (uint16_t)job,
				    .size = size,
				    .time_ns = t->now_ns,
				    .tgid = tgid,
				    .tid = tgid,
				    .started_ns = who(tgid).started_ns};
}

static void point(struct test *t, uint32_t tgid, uint32_t job, uint64_t tree, uint64_t highest,
		  uint64_t own)
{
	struct wire_gpu_point r = {.h = head(t, WIRE_GPU_POINT, sizeof(r), tgid, job),
				   .held = tree,
				   .highest = highest,
				   .own_held = own,
				   .own_pinned = 1};

	t->now_ns += MS;
	assert_int_equal(machine_feed(t->m, &r.h, &t->news), 0);
}

static void amounts(struct test *t, enum wire_gpu_why why, uint32_t tgid, uint32_t job,
		    struct wire_gpu_amount tree, struct wire_gpu_amount own)
{
	static struct wire_gpu r;

	r = (struct wire_gpu){.h = head(t, WIRE_GPU, sizeof(r), tgid, job), .why = why};
	r.tree[WIRE_GPU_ALL] = tree;
	r.own[WIRE_GPU_ALL] = own;
	t->now_ns += MS;
	assert_int_equal(machine_feed(t->m, &r.h, &t->news), 0);
}

/* Its end says what it held: what the driver frees after that comes from another ring, late. */
static void process_in_no_job(void **state)
{
	struct test *t = *state;

	forked(t, 100, 1, 0);
	point(t, 100, 0, 900, 900, 30);
	assert_true(process(t, 100)->memory.has_gpu);
	assert_int_equal(process(t, 100)->memory.gpu, 30);
	assert_int_equal(process(t, 100)->memory.pinned, 1);
	point(t, 100, 0, 880, 900, 10);
	assert_int_equal(process(t, 100)->memory.gpu, 10);
	assert_int_equal(process(t, 100)->memory.peak_gpu, 30);
	amounts(t, WIRE_GPU_EXIT, 100, 0, (struct wire_gpu_amount){880, 900, 900, 1},
		(struct wire_gpu_amount){10, 44, 44, 1});
	point(t, 100, 0, 870, 880, 0);
	assert_int_equal(process(t, 100)->memory.gpu, 10);
	assert_int_equal(process(t, 100)->memory.peak_gpu, 44);
	exited(t, 100, 0);
	assert_int_equal(process(t, 100)->memory.gpu, 10);
	point(t, 101, 0, 1, 1, 1); /* of a process that nobody knows */
	assert_null(t->news.process);
}

/* Its rows and totals have it, too; points of another job by that index have not. */
static void job_and_its_rows(void **state)
{
	struct test *t = *state;
	struct profile_checkpoint row;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 5, 0, "");
	point(t, 100, 5, 300, 400, 300);
	assert_int_equal(job(t, 0)->gpu, 300);
	assert_int_equal(job(t, 0)->gpu_peak, 400);
	point(t, 100, 6, 7000, 7000, 7000);
	assert_int_equal(job(t, 0)->gpu_peak, 400);
	/* The kernel side counts the process for no job yet. */
	amounts(t, WIRE_GPU_CHECKPOINT, 100, 0, (struct wire_gpu_amount){8000, 8000, 8000, 1},
		(struct wire_gpu_amount){200, 500, 500, 1});
	assert_int_equal(job(t, 0)->gpu_peak, 400);
	amounts(t, WIRE_GPU_CHECKPOINT, 100, 5, (struct wire_gpu_amount){200, 500, 500, 1},
		(struct wire_gpu_amount){200, 500, 500, 1});
	hit(t, WIRE_MARK, 100, 5, 1, "a");
	assert_int_equal(job(t, 0)->gpu_peak, 500);
	machine_row(job(t, 0), 0, &row);
	assert_false(row.tree.has_gpu);
	machine_row(job(t, 0), 1, &row);
	assert_true(row.tree.has_gpu);
	assert_int_equal(row.tree.gpu, 200);
	assert_int_equal(row.tree.gpu_step_peak, 500);
	hit(t, WIRE_FINISH, 100, 5, 2, "");
	assert_int_equal(profile_totals(job(t, 0)->profile)->peak_gpu, 500);
	point(t, 100, 5, 9000, 9000, 0);
	assert_int_equal(job(t, 0)->gpu_peak, 500);
}

/* A thread notes what there is, and another one is faster to tell what there was after that. */
static void points_that_come_late(void **state)
{
	struct test *t = *state;

	forked(t, 100, 1, 0);
	hit(t, WIRE_START, 100, 5, 0, "");
	point(t, 100, 5, 300, 300, 300);
	point(t, 100, 5, 20, 300, 10);
	t->now_ns -= 3 * MS / 2;
	point(t, 100, 5, 290, 700, 600);
	assert_int_equal(job(t, 0)->gpu, 20);
	assert_int_equal(job(t, 0)->gpu_peak, 700);
	assert_int_equal(process(t, 100)->memory.gpu, 10);
	assert_int_equal(process(t, 100)->memory.peak_gpu, 600);
	t->now_ns += MS;
	/* The end of one that is counted for no job says nothing of the job. */
	amounts(t, WIRE_GPU_EXIT, 100, 0, (struct wire_gpu_amount){8000, 8000, 8000, 1},
		(struct wire_gpu_amount){7, 650, 650, 1});
	assert_int_equal(job(t, 0)->gpu_peak, 700);
	assert_int_equal(process(t, 100)->memory.gpu, 7);
	assert_int_equal(process(t, 100)->memory.peak_gpu, 650);
}

int main(void)
{
#define test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(process_in_no_job),
		test(job_and_its_rows),
		test(points_that_come_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
