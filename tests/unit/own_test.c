/* SPDX-License-Identifier: GPL-2.0-only */
/* What a phase has of the process that began it, alone; and which phase it is in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

static const struct record_who OTHER = {.tgid = 102, .tid = 102, .started_ns = 3};
static const struct record_who THREAD = {.tgid = 101, .tid = 777, .started_ns = 2};

/* A checkpoint of a process that alone has so many pages, had so many since its last, and has
 * computed for so many ms. */
static void own_hit(struct run *run, struct record_who who, enum wire_what what, const char *name,
		    uint64_t pages, uint64_t step_peak, uint64_t cpu_ms)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, run->now_ns, who, name);
	record_memory(&r, 1000, 1000, 1000);
	r.cp.own.memory = (struct wire_memory){.anon = pages, .step_peak = step_peak};
	r.cp.own.usage.cpu_ns = cpu_ms * MS;
	run->now_ns += MS;
	feed(run, &r);
}

static void event(struct run *run, enum wire_kind kind, struct record_who who, uint32_t ppid,
		  uint64_t step_peak, uint64_t cpu_ms)
{
	union record r;

	record_process(&r, kind, run->now_ns, who, ppid, "", 0);
	r.process.memory.step_peak = step_peak;
	r.process.usage.cpu_ns = cpu_ms * MS;
	run->now_ns += MS;
	feed(run, &r);
}

static void check(const struct profile_phase *phase, uint64_t peak, int64_t delta, uint64_t cpu_ms)
{
	assert_true(phase->own.has_memory && phase->own.has_delta && phase->own.has_usage);
	assert_int_equal(phase->own.peak_rss, peak * RECORDS_PAGE);
	assert_int_equal((int64_t)(phase->own.end_rss - phase->own.start_rss),
			 delta * RECORDS_PAGE);
	assert_int_equal(phase->own.usage.cpu_ns, cpu_ms * MS);
}

/* Two processes in phases at a time: each phase has its own's, and all steps of it. */
static void test_others_do_not_count(void **state)
{
	struct run *run = *state;

	own_hit(run, CHILD, WIRE_BEGIN, "Layer", 10, 90, 5);
	own_hit(run, OTHER, WIRE_BEGIN, "Layer", 50, 70, 100);
	own_hit(run, CHILD, WIRE_BEGIN, "inner", 12, 40, 7);
	own_hit(run, OTHER, WIRE_METRIC, "loss", 60, 500, 110);
	own_hit(run, THREAD, WIRE_END, "inner", 20, 30, 8);
	own_hit(run, CHILD, WIRE_END, "Layer", 15, 25, 9);
	own_hit(run, OTHER, WIRE_END, "Layer", 55, 60, 130);
	own_hit(run, CHILD, WIRE_MARK, "later", 900, 900, 900);
	finish(run);
	check(phase(run, 0), 40, 5, 4);
	check(phase(run, 1), 500, 5, 30);
	check(phase(run, 2), 30, 8, 1);
	assert_int_equal(phase(run, 3)->kind, PROFILE_PHASE_GAP);
	assert_false(phase(run, 3)->own.has_usage);
}

/* Its end tells the last peak and what it used; growth nobody knows. */
static void test_ends_in_its_phase(void **state)
{
	struct run *run = *state;
	const struct profile_phase *layer;

	event(run, WIRE_FORK, CHILD, 100, 0, 0);
	own_hit(run, CHILD, WIRE_BEGIN, "Layer", 10, 10, 5);
	event(run, WIRE_EXIT, CHILD, 100, 80, 25);
	own_hit(run, MAIN, WIRE_FINISH, "", 500, 500, 500);
	finish(run);
	layer = phase(run, 0);
	assert_true(layer->own.has_memory && layer->own.has_usage && !layer->own.has_delta);
	assert_int_equal(layer->own.peak_rss, 80 * RECORDS_PAGE);
	assert_int_equal(layer->own.usage.cpu_ns, 20 * MS);
}

/* The run ends within phases: its last record tells of one process only. */
static void test_ends_with_the_run(void **state)
{
	struct run *run = *state;

	own_hit(run, MAIN, WIRE_BEGIN, "Mine", 10, 10, 5);
	own_hit(run, CHILD, WIRE_BEGIN, "Layer", 10, 10, 5);
	own_hit(run, MAIN, WIRE_FINISH, "", 30, 70, 6);
	finish(run);
	check(phase(run, 0), 70, 20, 1);
	assert_false(phase(run, 1)->own.has_memory || phase(run, 1)->own.has_delta ||
		     phase(run, 1)->own.has_usage);
}

/* Who has no memory of its own, as after vfork, has no peak. */
static void test_no_memory_of_its_own(void **state)
{
	struct run *run = *state;

	own_hit(run, CHILD, WIRE_BEGIN, "Layer", 0, 0, 5);
	own_hit(run, CHILD, WIRE_END, "Layer", 0, 0, 8);
	finish(run);
	assert_false(phase(run, 0)->own.has_memory || phase(run, 0)->own.has_delta);
	assert_true(phase(run, 0)->own.has_usage);
	assert_int_equal(phase(run, 0)->own.usage.cpu_ns, 3 * MS);
}

/* A phase is in its thread's, or in that of the nearest ancestor that has one. */
static void test_parents(void **state)
{
	/* Its number was that of CHILD's parent before. */
	const struct record_who reused = {.tgid = 100, .tid = 100, .started_ns = 9};
	struct run *run = *state;

	event(run, WIRE_FORK, MAIN, 1, 0, 0);
	event(run, WIRE_FORK, CHILD, MAIN.tgid, 0, 0);
	event(run, WIRE_FORK, OTHER, CHILD.tgid, 0, 0);
	own_hit(run, MAIN, WIRE_START, "", 10, 10, 1);
	own_hit(run, MAIN, WIRE_BEGIN, "all", 10, 10, 1);
	own_hit(run, OTHER, WIRE_BEGIN, "grandchild", 10, 10, 1);
	own_hit(run, OTHER, WIRE_BEGIN, "inner", 10, 10, 1);
	own_hit(run, CHILD, WIRE_BEGIN, "child", 10, 10, 1);
	own_hit(run, MAIN, WIRE_END, "all", 10, 10, 1);
	own_hit(run, THREAD, WIRE_BEGIN, "thread", 10, 10, 1);
	event(run, WIRE_EXIT, MAIN, 1, 0, 0);
	event(run, WIRE_FORK, reused, 1, 0, 0);
	own_hit(run, reused, WIRE_BEGIN, "stranger", 10, 10, 1);
	own_hit(run, CHILD, WIRE_END, "child", 10, 10, 1);
	own_hit(run, CHILD, WIRE_BEGIN, "no relation", 10, 10, 1);
	finish(run);
	assert_int_equal(phase(run, 0)->parent, PROFILE_NO_PARENT);
	assert_int_equal(phase(run, 1)->parent, 0);
	assert_int_equal(phase(run, 2)->parent, 1);
	assert_int_equal(phase(run, 3)->parent, 0);
	assert_int_equal(phase(run, 4)->parent,
			 PROFILE_NO_PARENT); /* threads nest for themselves */
	assert_string_equal(phase(run, 6)->name, "no relation");
	assert_int_equal(phase(run, 6)->parent, PROFILE_NO_PARENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(others_do_not_count),  CASE(ends_in_its_phase), CASE(ends_with_the_run),
		CASE(no_memory_of_its_own), CASE(parents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
