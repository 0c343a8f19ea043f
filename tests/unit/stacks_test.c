/* SPDX-License-Identifier: GPL-2.0-only */
/* Which code made memory grow: samples that are charged to phases by their epochs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/stacks.h"
#include "profile_run.h"

static const char whole[] = "whole";

/* A checkpoint that begins an epoch, after so many pages of growth. */
static void checkpoint(struct run *run, enum wire_what what, const char *name, uint64_t epoch,
		       uint64_t pages)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, run->now_ns, MAIN, name);
	record_memory(&r, pages, pages, pages);
	r.cp.grown = epoch << WIRE_GROWTH_BITS | pages;
	run->now_ns += MS;
	feed(run, &r);
}

static void sample(struct stacks *s, uint32_t call, uint64_t first, uint64_t epoch, uint64_t weight,
		   uint64_t late)
{
	const struct wire_stack record = {.first_epoch = first,
					  .epoch = epoch,
					  .weight = weight,
					  .late = late,
					  .kind = WIRE_STACK_ANON};

	stacks_add(s, &record, call, whole);
}

/* Pages that were charged to a call in a phase. */
static uint64_t pages_of(const struct stacks *s, uint32_t phase, uint32_t call)
{
	size_t n;
	const struct stacks_charged *touched = stacks_touched(s, &n);
	uint64_t pages = 0;

	for (size_t i = 0; i < n; i++)
		if (touched[i].phase == phase && touched[i].call == call)
			pages += touched[i].amount / RECORDS_PAGE;
	return pages;
}

/*
 * Start is epoch 1, "Load" begins with 2, "Scales" in it with 3, ends with 4, "Load" with 5. A
 * sample whose pages came before a phase as well counts there for what came in its last epoch.
 */
static void test_phases(void **state)
{
	struct run *run = *state;
	struct stacks *s = stacks_new(RECORDS_PAGE, false);
	const uint32_t main_call = stacks_call(s, STACKS_ROOT, "main", "/bin/a", 0);
	const uint32_t load = stacks_call(s, main_call, "load", "/bin/a", 0);
	size_t n;

	checkpoint(run, WIRE_START, "", 1, 4);
	checkpoint(run, WIRE_BEGIN, "Load", 2, 10);
	checkpoint(run, WIRE_BEGIN, "Scales", 3, 30);
	checkpoint(run, WIRE_END, "Scales", 4, 50);
	checkpoint(run, WIRE_END, "Load", 5, 60);
	checkpoint(run, WIRE_FINISH, "", 6, 61);
	assert_int_equal(profile_finish(run->p, run->now_ns), 0);

	sample(s, main_call, 1, 1, 4, 4);
	sample(s, load, 1, 2, 16, 11); /* 5 before Load */
	sample(s, load, 2, 2, 8, 8);
	sample(s, load, 2, 3, 20, 19);	  /* 1 before Scales, in Load */
	sample(s, main_call, 5, 6, 3, 1); /* 1 after the end */
	assert_int_equal(stacks_finish(s, run->p), 0);

	profile_phases(run->p, &n);
	assert_int_equal(n, 2);
	assert_int_equal(pages_of(s, 0, load), 11 + 8 + 20);
	assert_int_equal(pages_of(s, 1, load), 19);
	assert_int_equal(pages_of(s, 1, main_call), 0);
	assert_int_equal(pages_of(s, STACKS_WHOLE_RUN, load), 16 + 8 + 20);
	assert_int_equal(pages_of(s, STACKS_WHOLE_RUN, main_call), 4);
	assert_int_equal(stacks_totals(s).grown, 61 * RECORDS_PAGE);
	stacks_free(s);
}

static void back_checkpoint(struct run *run, enum wire_what what, const char *name, uint64_t epoch,
			    uint64_t back, uint64_t ended)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, ++run->now_ns, MAIN, name);
	r.cp.grown = epoch << WIRE_GROWTH_BITS | 100;
	r.cp.given_back = epoch << WIRE_GROWTH_BITS | back;
	r.cp.ended = ended;
	feed(run, &r);
}

static uint64_t back_of(const struct stacks *s, uint32_t phase, uint32_t call, uint64_t *samples)
{
	size_t n;
	const struct stacks_charged *list = stacks_given_back(s, &n);
	uint64_t pages = 0;

	*samples = 0;
	for (size_t i = 0; i < n; i++) {
		if (list[i].phase != phase || list[i].call != call)
			continue;
		pages += list[i].amount / RECORDS_PAGE;
		*samples += list[i].samples;
	}
	return pages;
}

/* Records that have the stack of a sample come before it is unwound, and go on in a phase that
 * begins as the call does; that of one that was lost is not known. */
static void test_given_back(void **state)
{
	struct run *run = *state;
	struct stacks *s = stacks_new(RECORDS_PAGE, false);
	const uint32_t unmap = stacks_call(s, STACKS_ROOT, "unmap", "/bin/a", 0);
	struct wire_stack sample = {.time_ns = 77,
				    .tid = 7,
				    .kind = WIRE_STACK_ANON,
				    .back = 1,
				    .first_epoch = 1,
				    .epoch = 1,
				    .weight = 5,
				    .late = 5};
	struct wire_stack again = sample;
	uint64_t samples;

	back_checkpoint(run, WIRE_START, "", 1, 0, 0);
	back_checkpoint(run, WIRE_BEGIN, "Free", 2, 8, 10);
	back_checkpoint(run, WIRE_END, "Free", 3, 40, 12);
	back_checkpoint(run, WIRE_FINISH, "", 4, 41, 30);
	assert_int_equal(profile_finish(run->p, run->now_ns), 0);

	again.time_ns = 78;
	again.since_ns = 77;
	again.epoch = 2;
	again.weight = 16;
	again.late = 13;
	stacks_add_again(s, &again);
	stacks_add(s, &sample, unmap, whole);
	again.first_epoch = 2;
	again.since_ns = 76;
	stacks_add_again(s, &again);
	again.since_ns = 77;
	again.tid = 8;
	stacks_add_again(s, &again);
	assert_int_equal(stacks_finish(s, run->p), 0);

	assert_int_equal(back_of(s, STACKS_WHOLE_RUN, unmap, &samples), 5 + 16);
	assert_int_equal(samples, 1);
	assert_int_equal(back_of(s, 0, unmap, &samples), 13);
	assert_int_equal(samples, 0);
	assert_int_equal(back_of(s, 0, STACKS_ROOT, &samples), 2 * 16);
	assert_int_equal(pages_of(s, STACKS_WHOLE_RUN, unmap), 0);
	assert_int_equal(stacks_totals(s).given_back, 41 * RECORDS_PAGE);
	assert_int_equal(stacks_totals(s).ended, 30 * RECORDS_PAGE);
	stacks_free(s);
}

/* A checkpoint, up to which so many bytes were allocated on GPUs. */
static void gpu_checkpoint(struct run *run, enum wire_what what, const char *name, uint64_t bytes)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, ++run->now_ns, MAIN, name);
	r.cp.gpu_grown = bytes;
	feed(run, &r);
}

static uint64_t bytes_of_gpu(const struct stacks *s, uint32_t phase, uint32_t call)
{
	size_t n;
	const struct stacks_charged *list = stacks_allocated(s, &n);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += list[i].phase == phase && list[i].call == call ? list[i].amount : 0;
	return sum;
}

/* first, at: where the first and the last allocation of the sample begin; bytes: of the last. */
static void gpu_sample(struct stacks *s, uint32_t call, uint64_t first, uint64_t at, uint64_t bytes,
		       uint64_t weight)
{
	const struct wire_stack sample = {.kind = WIRE_STACK_GPU,
					  .first_epoch = first,
					  .epoch = at,
					  .late = bytes,
					  .weight = weight};

	stacks_add(s, &sample, call, "whole");
}

/* The example of gpu_stack.bpf.h: of a sample that began before a phase, that has the last part. */
static void test_gpu_by_phase(void **state)
{
	struct run *run = *state;
	struct stacks *s = stacks_new(RECORDS_PAGE, false);
	const uint32_t small = stacks_call(s, STACKS_ROOT, "small", "/bin/a", 0);
	const uint32_t large = stacks_call(s, STACKS_ROOT, "large", "/bin/a", 0);

	gpu_checkpoint(run, WIRE_START, "", 0);
	gpu_checkpoint(run, WIRE_BEGIN, "Load", 20);
	gpu_checkpoint(run, WIRE_END, "Load", 1070);
	gpu_checkpoint(run, WIRE_FINISH, "", 1100);
	assert_int_equal(profile_finish(run->p, run->now_ns), 0);
	gpu_sample(s, large, 30, 30, 1000, 1000);
	gpu_sample(s, small, 0, 1030, 40, 70);
	gpu_sample(s, large, 1070, 1070, 30, 30);
	assert_int_equal(stacks_finish(s, run->p), 0);
	assert_int_equal(bytes_of_gpu(s, 0, large), 1000);
	assert_int_equal(bytes_of_gpu(s, 0, small), 40);
	assert_int_equal(bytes_of_gpu(s, STACKS_WHOLE_RUN, large), 1030);
	assert_int_equal(bytes_of_gpu(s, STACKS_WHOLE_RUN, small), 70);
	assert_int_equal(stacks_totals(s).gpu_grown, 1100);
	assert_true(stacks_totals(s).of_gpu);
	stacks_free(s);
}

/* A checkpoint at that time, up to which the tree has used so much CPU time. */
static void checkpoint_at(struct run *run, enum wire_what what, const char *name, uint64_t time_ns,
			  uint64_t cpu_ns)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, time_ns, MAIN, name);
	r.cp.tree.usage.cpu_ns = cpu_ns;
	run->now_ns = time_ns;
	feed(run, &r);
}

static void cpu_sample(struct stacks *s, uint32_t call, uint64_t since_ns, uint64_t time_ns,
		       uint64_t weight)
{
	const struct wire_stack record = {
		.since_ns = since_ns, .time_ns = time_ns, .weight = weight, .kind = WIRE_STACK_CPU};

	stacks_add(s, &record, call, whole);
}

static uint64_t ns_of(const struct stacks *s, uint32_t phase, uint32_t call)
{
	size_t n;
	const struct stacks_charged *ran = stacks_ran(s, &n);
	uint64_t ns = 0;

	for (size_t i = 0; i < n; i++)
		if (ran[i].phase == phase && ran[i].call == call)
			ns += ran[i].amount;
	return ns;
}

/*
 * "Load" begins after 100 ms and ends after 200 ms, "Scales" is in it from 140 to 160 ms. A sample
 * counts whole, but for what its thread used before the run. What samples of Scales have beyond the
 * CPU time that it used is taken off all alike; excess is what came within it.
 */
static void test_cpu_time(void **state)
{
	struct run *run = *state;
	const uint64_t t = run->now_ns;
	struct stacks *s = stacks_new(0, true);
	const uint32_t main_call = stacks_call(s, STACKS_ROOT, "main", "/bin/a", 0);
	const uint32_t load = stacks_call(s, main_call, "load", "/bin/a", 0);

	checkpoint_at(run, WIRE_START, "", t, 0);
	checkpoint_at(run, WIRE_BEGIN, "Load", t + 100 * MS, 90 * MS);
	checkpoint_at(run, WIRE_BEGIN, "Scales", t + 140 * MS, 130 * MS);
	checkpoint_at(run, WIRE_END, "Scales", t + 160 * MS, 150 * MS + 600);
	checkpoint_at(run, WIRE_END, "Load", t + 200 * MS, 190 * MS);
	checkpoint_at(run, WIRE_FINISH, "", t + 210 * MS, 200 * MS);
	assert_int_equal(profile_finish(run->p, run->now_ns), 0);

	cpu_sample(s, main_call, t - 5 * MS, t + 3 * MS, 8 * MS); /* 3 ms in the run */
	cpu_sample(s, main_call, t + 3 * MS, t + 90 * MS, 77 * MS);
	cpu_sample(s, load, t + 90 * MS, t + 104 * MS, 12 * MS);  /* 4 ms in Load */
	cpu_sample(s, load, t + 104 * MS, t + 150 * MS, 40 * MS); /* 10 ms in Scales */
	cpu_sample(s, main_call, t + 141 * MS, t + 159 * MS, 15 * MS);
	cpu_sample(s, load, t + 142 * MS, t + 158 * MS, 8 * MS);
	cpu_sample(s, main_call, t + 205 * MS, t + 215 * MS, 9 * MS); /* after the end */
	assert_int_equal(stacks_finish(s, run->p), 0);

	assert_int_equal(ns_of(s, STACKS_WHOLE_RUN, main_call), 95 * MS);
	assert_int_equal(ns_of(s, STACKS_WHOLE_RUN, load), 60 * MS);
	assert_int_equal(ns_of(s, 0, load), 60 * MS);
	assert_int_equal(ns_of(s, 0, main_call), 15 * MS);
	/* 63 ms of samples, and 23 ms of these within it, for 20.001 ms, as the profile tells it.
	 */
	assert_int_equal(ns_of(s, 1, load), 20001000ull * 48 / 63);
	assert_int_equal(ns_of(s, 1, main_call), 20001000ull * 15 / 63);
	assert_int_equal(stacks_totals(s).cpu_excess_ns, 23 * MS - 20001000);
	stacks_free(s);
}

/* Two CPUs mark at the same time: the later word may come first, and words begin anew at last. */
static void test_swapped_words(void **state)
{
	const uint64_t first = 5ull << WIRE_GROWTH_BITS | 70, later = 6ull << WIRE_GROWTH_BITS | 73;
	const uint64_t last = UINT64_MAX << WIRE_GROWTH_BITS | 70;
	struct stacks *s = stacks_new(RECORDS_PAGE, false);

	(void)state;
	assert_int_equal(stacks_growth(s, first, later), 3 * RECORDS_PAGE);
	assert_int_equal(stacks_growth(s, later, first), 0);
	assert_int_equal(stacks_growth(s, first, first), 0);
	assert_int_equal(stacks_growth(s, last, 73), 3 * RECORDS_PAGE);
	assert_int_equal(stacks_growth(s, 73, last), 0);
	stacks_free(s);
}

/* The same function by the same caller is one call; a name that is no UTF-8 is made so. */
static void test_calls(void **state)
{
	struct stacks *s = stacks_new(RECORDS_PAGE, false);
	const uint32_t a = stacks_call(s, STACKS_ROOT, "a", "/x", 0);
	const uint32_t b = stacks_call(s, a, "a", "/x", 0);
	const struct stacks_function *functions;
	size_t n;

	(void)state;
	assert_int_not_equal(a, b);
	assert_int_equal(stacks_call(s, STACKS_ROOT, "a", "/x", 0), a);
	assert_int_not_equal(stacks_call(s, STACKS_ROOT, "a", "/y", 0), a);
	stacks_call(s, STACKS_ROOT, "b\xff", "", 0);
	functions = stacks_functions(s, &n);
	assert_int_equal(n, 4); /* with the root's */
	assert_string_equal(functions[3].name, "b\xef\xbf\xbd");
	stacks_free(s);
}

/* What there is no room for is its caller's, and counted. */
static void test_bounds(void **state)
{
	struct stacks *s = stacks_new(RECORDS_PAGE, false);
	char name[32];

	(void)state;
	for (int i = 0; i < STACKS_MAX_FUNCTIONS - 1; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_int_not_equal(stacks_call(s, STACKS_ROOT, name, "", 0), STACKS_ROOT);
	}
	assert_int_equal(stacks_totals(s).dropped, 0);
	assert_int_equal(stacks_call(s, 7, "one more", "", 0), 7);
	assert_int_equal(stacks_totals(s).dropped, 1);
	for (int i = 0; i < STACKS_MAX_SAMPLES + 2; i++)
		sample(s, 1, 0, 0, 1, 1);
	assert_int_equal(stacks_totals(s).dropped, 3);
	stacks_free(s);
}

/* 97 Hz, half of that after 4,096 samples, and so on, however many there are. */
static void test_gaps(void **state)
{
	(void)state;
	for (uint64_t level = 0; level <= WIRE_STACK_LEVELS + 2; level++) {
		const uint64_t samples = level * WIRE_STACK_CPU_LEVEL;
		const uint64_t mean = (uint64_t)WIRE_STACK_CPU_GAP
				      << (level < WIRE_STACK_LEVELS ? level : WIRE_STACK_LEVELS);

		assert_int_equal(wire_stack_cpu_gap(samples, 0), 1);
		assert_in_range(wire_stack_cpu_gap(samples, 1u << 31), mean - mean / 1000,
				mean + 1);
		assert_in_range(wire_stack_cpu_gap(samples, UINT32_MAX), 2 * mean - mean / 1000,
				2 * mean);
	}
	assert_true(wire_stack_cpu_gap(WIRE_STACK_CPU_LEVEL - 1, UINT32_MAX) <
		    2 * (uint64_t)WIRE_STACK_CPU_GAP);
}

/* A checkpoint that begins an epoch after so many pages and so much CPU time, which windows see. */
static void windowed(struct run *run, struct windows *w, enum wire_what what, const char *name,
		     uint64_t epoch, uint64_t pages)
{
	union record r;

	record_checkpoint(&r, what, run->seq++, run->now_ns, MAIN, name);
	r.cp.grown = epoch << WIRE_GROWTH_BITS | pages;
	r.cp.tree.usage.cpu_ns = pages * MS;
	run->now_ns += 10 * MS;
	feed(run, &r);
	assert_int_equal(windows_step(w, run->step, profile_sums(run->p)), 0);
}

static void assert_within(const struct stacks *s, size_t i, uint32_t phase, uint64_t pages)
{
	size_t n;
	const struct stacks_within *list = stacks_within(s, &n);

	assert_in_range(i, 0, n - 1);
	assert_int_equal(list[i].phase, phase);
	assert_int_equal(list[i].bytes, pages * RECORDS_PAGE);
	assert_int_equal(list[i].cpu_ns, pages * MS);
}

/*
 * Samples count in windows alone, there for all phases that go on. "Across" begins in one window
 * and ends after it: the part in it counts.
 */
static void test_windows(void **state)
{
	const struct window_schedule schedule = {.skip = 1, .active = 1};
	struct run *run = *state;
	const uint64_t t = run->now_ns;
	struct windows *w = windows_new(&schedule, "Layer *");
	struct stacks *s = stacks_new(RECORDS_PAGE, true);
	const uint32_t load = stacks_call(s, STACKS_ROOT, "load", "/bin/a", 0);
	size_t n;

	windowed(run, w, WIRE_START, "", 1, 0);		 /* at 0 ms */
	windowed(run, w, WIRE_BEGIN, "Model", 2, 2);	 /* phase 0, at 10 ms */
	windowed(run, w, WIRE_BEGIN, "Layer 0", 3, 4);	 /* phase 1 */
	windowed(run, w, WIRE_END, "Layer 0", 4, 8);	 /* at 30 ms */
	windowed(run, w, WIRE_BEGIN, "Layer 1", 5, 10);	 /* phase 2: a window, at 40 ms */
	windowed(run, w, WIRE_BEGIN, "Across", 6, 15);	 /* phase 3, at 50 ms */
	windowed(run, w, WIRE_END, "Layer 1", 7, 22);	 /* at 60 ms */
	windowed(run, w, WIRE_END, "Across", 8, 30);	 /* at 70 ms */
	windowed(run, w, WIRE_BEGIN, "Layer 2", 9, 31);	 /* phase 4 */
	windowed(run, w, WIRE_END, "Layer 2", 10, 32);	 /* at 90 ms */
	windowed(run, w, WIRE_BEGIN, "Layer 3", 11, 33); /* phase 5: a window, at 100 ms */
	windowed(run, w, WIRE_END, "Layer 3", 12, 40);	 /* at 110 ms */
	windowed(run, w, WIRE_END, "Model", 13, 41);
	windowed(run, w, WIRE_FINISH, "", 14, 42);
	assert_int_equal(profile_finish(run->p, run->now_ns), 0);
	windows_finish(w, run->now_ns);

	sample(s, load, 3, 3, 4, 4);   /* in Layer 0 */
	sample(s, load, 4, 5, 6, 5);   /* 1 before Layer 1 */
	sample(s, load, 6, 6, 6, 6);   /* in Across */
	sample(s, load, 6, 7, 5, 4);   /* 1 in Layer 1, but its last page is not */
	sample(s, load, 7, 11, 9, 5);  /* 5 in Layer 3 */
	sample(s, load, 12, 12, 1, 1); /* after it */
	cpu_sample(s, load, t + 20 * MS, t + 30 * MS - 1, 4 * MS);
	cpu_sample(s, load, t + 40 * MS, t + 49 * MS, 5 * MS);
	cpu_sample(s, load, t + 49 * MS, t + 59 * MS, 6 * MS);
	cpu_sample(s, load, t + 59 * MS, t + 69 * MS, 7 * MS);
	cpu_sample(s, load, t + 100 * MS, t + 109 * MS, 7 * MS);
	stacks_set_windows(s, w);
	assert_int_equal(stacks_finish(s, run->p), 0);

	profile_phases(run->p, &n);
	assert_int_equal(n, 6);
	for (uint32_t phase = 0; phase < 6; phase++) {
		static const uint64_t pages[] = {5 + 6 + 5, 0, 5 + 6, 6, 0, 5};
		static const uint64_t cpu[] = {5 + 6 + 7, 0, 5 + 6, 6, 0, 7};

		assert_int_equal(pages_of(s, phase, load), pages[phase]);
		assert_int_equal(ns_of(s, phase, load), cpu[phase] * MS);
	}
	assert_int_equal(pages_of(s, STACKS_WHOLE_RUN, load), 16);
	assert_int_equal(ns_of(s, STACKS_WHOLE_RUN, load), 18 * MS);
	stacks_touched(s, &n);
	assert_int_equal(n, 5); /* one row of Model, whose samples are of two windows */
	stacks_within(s, &n);
	assert_int_equal(n, 5);
	assert_within(s, 0, STACKS_WHOLE_RUN, 12 + 7);
	assert_within(s, 1, 0, 12 + 7);
	assert_within(s, 2, 2, 12);
	assert_within(s, 3, 3, 7);
	assert_within(s, 4, 5, 7);
	assert_int_equal(stacks_totals(s).grown, 42 * RECORDS_PAGE);
	stacks_free(s);
	windows_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_phases, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gpu_by_phase, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_given_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cpu_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_windows, set_up, tear_down),
		cmocka_unit_test(test_swapped_words),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
