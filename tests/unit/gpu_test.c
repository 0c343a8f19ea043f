/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of GPUs: which checkpoint a record belongs to, and what rows, phases, processes, devices
 * and totals have of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

/* A record right before a checkpoint, or at an end. All that is held is on one device. */
struct gpu_amounts {
	uint64_t tree, tree_step, tree_peak;
	uint64_t own, own_peak;
	uint32_t device;
};

static void gpu(struct run *run, struct record_who who, enum wire_gpu_why why, struct gpu_amounts a)
{
	static struct wire_gpu r;
	const struct wire_gpu_amount tree = {a.tree, a.tree_peak, a.tree_step, run->now_ns};
	const struct wire_gpu_amount own = {a.own, a.own_peak, a.own_peak, run->now_ns};

	memset(&r, 0, sizeof(r));
	r.h = (struct wire_header){
		.kind = WIRE_GPU,
		.size = sizeof(r),
		.time_ns = run->now_ns - 10,
		.tgid = who.tgid,
		.tid = who.tid,
		.started_ns = who.started_ns,
	};
	r.why = why;
	r.processes = 2;
	r.tree[WIRE_GPU_ALL] = r.tree[WIRE_GPU_DEVICE + a.device] = tree;
	r.own[WIRE_GPU_ALL] = r.own[WIRE_GPU_DEVICE + a.device] = own;
	r.tree[WIRE_GPU_PINNED] = (struct wire_gpu_amount){1, a.tree_step + 1, a.tree_step + 1, 1};
	assert_true(wire_record_ok(&r, sizeof(r)));
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
	assert_null(run->step);
}

static void gpu_hit(struct run *run, struct record_who who, enum wire_what what, const char *name,
		    struct gpu_amounts a)
{
	gpu(run, who, WIRE_GPU_CHECKPOINT, a);
	hit(run, who, what, name, 10, 10);
}

/* Peaks between checkpoints are a step's; a text between two rows does not swallow its own. */
static void test_rows_phases_totals(void **state)
{
	struct run *run = *state;
	const struct profile_gpu *gpus;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	assert_false(run->step->tree.has_gpu);
	gpu_hit(run, MAIN, WIRE_BEGIN, "Load", (struct gpu_amounts){100, 150, 150, 100, 150, 0});
	assert_true(run->step->tree.has_gpu);
	assert_int_equal(run->step->tree.gpu, 100);
	assert_int_equal(run->step->tree.gpu_step_peak, 150);
	gpu_hit(run, MAIN, WIRE_TEXT, "...", (struct gpu_amounts){90, 900, 900, 90, 900, 1});
	gpu_hit(run, MAIN, WIRE_END, "Load", (struct gpu_amounts){70, 120, 900, 70, 900, 1});
	assert_int_equal(run->step->tree.gpu, 70);
	assert_int_equal(run->step->tree.gpu_step_peak, 900);
	gpu_hit(run, MAIN, WIRE_FINISH, "", (struct gpu_amounts){0, 70, 900, 0, 900, 1});
	assert_int_equal(run->step->tree.gpu_step_peak, 70);
	assert_true(run->step->tree.has_gpu);
	finish(run);
	assert_int_equal(phase(run, 0)->start_gpu, 100);
	assert_int_equal(phase(run, 0)->end_gpu, 70);
	assert_int_equal(phase(run, 0)->peak_gpu, 900);
	assert_int_equal(phase(run, 0)->peak_pinned, 901);
	assert_int_equal(profile_totals(run->p)->peak_gpu, 900);
	assert_int_equal(profile_totals(run->p)->peak_pinned, 901);
	assert_int_equal(process(run, 0)->memory.peak_gpu, 900);
	gpus = profile_gpus(run->p, &n);
	assert_int_equal(n, 2);
	assert_int_equal(gpus[0].device, 0);
	assert_int_equal(gpus[0].peak, 150);
	assert_int_equal(gpus[1].device, 1);
	assert_int_equal(gpus[1].peak, 900);
	assert_int_equal(gpus[1].process_peak, 900);
	assert_int_equal(gpus[1].held, 0);
}

/* Records of two threads come in between; each checkpoint takes its own thread's. One without a
 * record has nothing, and takes none that belonged to another checkpoint. */
static void test_of_the_same_thread(void **state)
{
	struct run *run = *state;

	gpu(run, MAIN, WIRE_GPU_CHECKPOINT, (struct gpu_amounts){5, 5, 5, 5, 5, 0});
	gpu(run, CHILD, WIRE_GPU_CHECKPOINT, (struct gpu_amounts){9, 9, 9, 4, 4, 0});
	hit(run, MAIN, WIRE_MARK, "a", 10, 10);
	assert_int_equal(run->step->tree.gpu, 5);
	hit(run, CHILD, WIRE_MARK, "b", 10, 10);
	assert_int_equal(run->step->tree.gpu, 9);
	assert_int_equal(run->step->own.gpu, 4);
	hit(run, CHILD, WIRE_MARK, "c", 10, 10);
	assert_false(run->step->tree.has_gpu);
}

/* A recipe held an end back until the thread's next checkpoint was through, and made two of it. */
static void test_late_checkpoint(void **state)
{
	struct run *run = *state;
	union record late;

	gpu(run, MAIN, WIRE_GPU_CHECKPOINT, (struct gpu_amounts){5, 5, 5, 5, 5, 0});
	record_checkpoint(&late, WIRE_MARK, run->seq++, run->now_ns, MAIN, "late");
	run->now_ns += MS;
	gpu_hit(run, MAIN, WIRE_MARK, "next", (struct gpu_amounts){7, 7, 7, 7, 7, 0});
	assert_int_equal(run->step->tree.gpu, 7);
	feed(run, &late);
	assert_int_equal(run->step->tree.gpu, 5);
	late.cp.text_state = WIRE_TEXT_AGAIN;
	feed(run, &late);
	assert_int_equal(run->step->tree.gpu, 5);
}

/* What one process alone had on a device: of that before the run, or the job, nothing. */
static void test_peak_before_the_run(void **state)
{
	struct run *run = *state;
	const struct profile_gpu *gpus;
	static struct wire_gpu r;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	r.h = (struct wire_header){.kind = WIRE_GPU, .size = sizeof(r), .time_ns = run->now_ns};
	r.why = WIRE_GPU_EXIT;
	r.tree[WIRE_GPU_DEVICE] = (struct wire_gpu_amount){60, 90, 90, run->now_ns};
	r.own[WIRE_GPU_DEVICE] = (struct wire_gpu_amount){50, 800, 50, START_NS - 1};
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
	finish(run);
	gpus = profile_gpus(run->p, &n);
	assert_int_equal(n, 1);
	assert_int_equal(gpus[0].peak, 90);
	assert_int_equal(gpus[0].process_peak, 50);
}

/* What a process held and had at most is known at its end; a child's peak counts in the tree's. */
static void test_end_of_a_process(void **state)
{
	struct run *run = *state;

	process_event(run, WIRE_FORK, MAIN, 1, 0, 1);
	process_event(run, WIRE_FORK, CHILD, 100, 0, 1);
	gpu(run, CHILD, WIRE_GPU_EXIT, (struct gpu_amounts){40, 80, 80, 40, 80, 3});
	process_event(run, WIRE_EXIT, CHILD, 100, 0, 1);
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	finish(run);
	assert_false(process(run, 0)->memory.has_gpu);
	assert_int_equal(process(run, 1)->memory.gpu, 40);
	assert_int_equal(process(run, 1)->memory.peak_gpu, 80);
	assert_int_equal(profile_totals(run->p)->peak_gpu, 80);
	assert_int_equal(profile_totals(run->p)->gpu_processes, 2);
}

/* The last ones are kept, all are counted. */
static void test_refusals(void **state)
{
	struct run *run = *state;
	const struct profile_gpu_refusal *kept;
	size_t n;

	for (uint32_t i = 1; i <= PROFILE_MAX_REFUSALS + 3; i++) {
		struct wire_gpu_refused r = {
			.h = {.kind = WIRE_GPU_REFUSED, .size = sizeof(r), .tgid = 100},
			.bytes = i,
			.place = i % 2 ? WIRE_GPU_DEVICE + 2 : WIRE_GPU_PINNED,
			.result = 2,
			.vendor = WIRE_GPU_NVIDIA,
		};

		assert_true(wire_record_ok(&r, sizeof(r)));
		assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
	}
	kept = profile_gpu_refusals(run->p, &n);
	assert_int_equal(n, PROFILE_MAX_REFUSALS);
	assert_int_equal(kept[0].number, 4);
	assert_int_equal(kept[n - 1].number, PROFILE_MAX_REFUSALS + 3);
	assert_int_equal(kept[0].bytes, 4);
	assert_true(kept[0].pinned);
	assert_int_equal(kept[n - 1].bytes, PROFILE_MAX_REFUSALS + 3);
	assert_int_equal(kept[n - 1].device, 2);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(rows_phases_totals), CASE(of_the_same_thread), CASE(late_checkpoint),
		CASE(end_of_a_process),	  CASE(refusals),	    CASE(peak_before_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
