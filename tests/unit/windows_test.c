/* SPDX-License-Identifier: GPL-2.0-only */
/* In which repeats of a phase samples are taken, when they are switched on and off, and how late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/windows.h"
#include "profile_run.h"

struct test {
	struct run *run;
	struct windows *w;
	uint64_t delay_ns; /* after a row until samples are switched */
};

static void begin_test(struct test *t, struct run *run, unsigned int skip, unsigned int warmup,
		       unsigned int active, unsigned int repeat)
{
	const struct window_schedule schedule = {skip, warmup, active, repeat};

	*t = (struct test){.run = run, .w = windows_new(&schedule, "Layer*")};
	assert_non_null(t->w);
	windows_switched(t->w, windows_wanted(t->w), run->now_ns);
}

/* Returns true if samples are taken after the row. */
static bool step_of(struct test *t, struct record_who who, enum wire_what what, const char *name)
{
	const uint64_t at = t->run->now_ns;
	union record r; /* the step's name is its record's */

	record_checkpoint(&r, what, t->run->seq++, at, who, name);
	record_memory(&r, 10, 10, 10);
	t->run->now_ns += MS;
	feed(t->run, &r);
	assert_non_null(t->run->step);
	assert_int_equal(windows_step(t->w, t->run->step, &(struct profile_sums){0}), 0);
	windows_switched(t->w, windows_wanted(t->w), at + t->delay_ns);
	return windows_wanted(t->w);
}

static bool begin(struct test *t, const char *name)
{
	return step_of(t, MAIN, WIRE_BEGIN, name);
}

static bool end(struct test *t, const char *name)
{
	return step_of(t, MAIN, WIRE_END, name);
}

/* The names of the windows, with blanks between. */
static void assert_windows(struct test *t, const char *names)
{
	char found[256] = "";
	size_t n;
	const struct window *list;

	windows_finish(t->w, t->run->now_ns);
	list = windows_list(t->w, &n);
	for (size_t i = 0; i < n; i++) {
		strcat(found, i ? " " : "");
		strcat(found, list[i].name);
	}
	assert_string_equal(found, names);
	windows_free(t->w);
}

/* skip=2,warmup=1,active=2,repeat=2: on from the end of the phase before the warm-up to the end of
 * the last active one. A row of another name changes nothing. */
static void test_schedule(void **state)
{
	static const bool within[] = {0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0};
	static const bool after[] = {0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0};
	struct test t;
	char name[32];

	begin_test(&t, *state, 2, 1, 2, 2);
	assert_false(step_of(&t, MAIN, WIRE_START, ""));
	assert_false(begin(&t, "Model"));
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "Layer %d", i);
		assert_int_equal(begin(&t, name), within[i]);
		assert_int_equal(begin(&t, "Part"), within[i]);
		assert_int_equal(end(&t, "Part"), within[i]);
		assert_int_equal(end(&t, name), after[i]);
	}
	assert_false(end(&t, "Model"));
	assert_int_equal(windows_totals(t.w).matched, 12);
	/* From the end of Layer 1 to the end of Layer 4: 12 rows of 1 ms, twice. */
	assert_int_equal(windows_totals(t.w).sampling_ns, (uint64_t)2 * 12 * 1000000);
	assert_windows(&t, "Layer 3 Layer 4 Layer 8 Layer 9");
}

/* Without a phase to wait for, samples are taken from the beginning; and not after the last. */
static void test_at_once(void **state)
{
	struct test t;

	begin_test(&t, *state, 0, 0, 1, 1);
	assert_true(windows_wanted(t.w));
	assert_true(step_of(&t, MAIN, WIRE_START, ""));
	assert_true(begin(&t, "Layer 0"));
	assert_false(end(&t, "Layer 0"));
	assert_false(begin(&t, "Layer 1"));
	assert_false(end(&t, "Layer 1"));
	assert_windows(&t, "Layer 0");
}

/* Each process counts its own; a phase that is open anywhere keeps them on; a process that has
 * ended is not waited for. */
static void test_processes(void **state)
{
	struct test t;

	begin_test(&t, *state, 1, 0, 1, 0);
	assert_false(step_of(&t, MAIN, WIRE_BEGIN, "Layer 0"));
	assert_false(step_of(&t, CHILD, WIRE_BEGIN, "Layer 0"));
	assert_true(step_of(&t, MAIN, WIRE_END, "Layer 0"));
	assert_true(step_of(&t, CHILD, WIRE_END, "Layer 0"));
	windows_exit(t.w, CHILD.tgid, CHILD.started_ns);
	assert_true(windows_wanted(t.w));
	assert_true(step_of(&t, MAIN, WIRE_BEGIN, "Layer 1"));
	assert_false(step_of(&t, MAIN, WIRE_END, "Layer 1"));
	windows_exit(t.w, 4711, 1); /* one that never had such a phase */
	assert_false(step_of(&t, MAIN, WIRE_BEGIN, "Layer 2"));
	assert_true(step_of(&t, MAIN, WIRE_END, "Layer 2"));
	windows_exit(t.w, MAIN.tgid, MAIN.started_ns);
	assert_false(windows_wanted(t.w));
	assert_windows(&t, "Layer 1");
}

/* Phases within each other and at the same time count in the order in which they begin. */
static void test_nested(void **state)
{
	struct test t;

	begin_test(&t, *state, 1, 0, 1, 1);
	assert_false(begin(&t, "Layer A"));
	assert_true(begin(&t, "Layer A.1"));
	assert_true(begin(&t, "Layer A.1.a"));
	assert_false(end(&t, "Layer A.1"));
	assert_false(end(&t, "Layer A.1.a"));
	assert_false(end(&t, "Layer A"));
	assert_windows(&t, "Layer A.1");
}

/* What lies between two marks is a phase, too, but for what comes before the first. */
static void test_marks(void **state)
{
	struct test t;

	begin_test(&t, *state, 1, 0, 1, 0);
	assert_false(step_of(&t, MAIN, WIRE_START, "Layers"));
	assert_false(step_of(&t, MAIN, WIRE_MARK, "Layer 0"));
	assert_true(step_of(&t, MAIN, WIRE_MARK, "Layer 1"));
	assert_false(step_of(&t, MAIN, WIRE_MARK, "Layer 2"));
	assert_true(step_of(&t, MAIN, WIRE_MARK, "Layer 3"));
	assert_false(step_of(&t, MAIN, WIRE_MARK, "other"));
	assert_windows(&t, "Layer 1 Layer 3");
}

/* Samples begin 300 us after the row that asks for them: late for a phase that begins with it, not
 * for the next, and of one that has ended by then all is late. */
static void test_late(void **state)
{
	struct test t;
	const struct window *list;
	size_t n;

	begin_test(&t, *state, 1, 0, 3, 0);
	t.delay_ns = 300000;
	step_of(&t, MAIN, WIRE_MARK, "Layer 0");
	step_of(&t, MAIN, WIRE_MARK, "Layer 1");
	step_of(&t, MAIN, WIRE_MARK, "Layer 2");
	step_of(&t, MAIN, WIRE_MARK, "Layer 3");
	step_of(&t, MAIN, WIRE_MARK, "Layer 4");
	t.delay_ns = 5000000;
	step_of(&t, MAIN, WIRE_MARK, "Layer 5");
	step_of(&t, MAIN, WIRE_MARK, "x");
	windows_finish(t.w, t.run->now_ns);
	list = windows_list(t.w, &n);
	assert_int_equal(n, 4);
	assert_int_equal(list[0].late_ns, 300000);
	assert_int_equal(list[1].late_ns, 0);
	assert_int_equal(list[2].late_ns, 0);
	assert_int_equal(list[3].late_ns, list[3].span.to.ns - list[3].span.from.ns);
	windows_free(t.w);
}

/* Those that overlap, and those that touch, are one. */
static void test_merged(void **state)
{
	struct test t;
	struct window_span *spans;
	const uint64_t from = ((struct run *)*state)->now_ns;
	size_t n;

	begin_test(&t, *state, 0, 0, 1, 0);
	step_of(&t, MAIN, WIRE_BEGIN, "Layer 0");
	step_of(&t, CHILD, WIRE_BEGIN, "Layer 0");
	step_of(&t, MAIN, WIRE_END, "Layer 0");
	step_of(&t, CHILD, WIRE_END, "Layer 0");
	step_of(&t, MAIN, WIRE_BEGIN, "Layer 1");
	windows_finish(t.w, t.run->now_ns);
	spans = windows_merged(t.w, &n);
	assert_non_null(spans);
	assert_int_equal(n, 2);
	assert_int_equal(spans[0].from.ns, from);
	assert_int_equal(spans[0].to.ns, from + 3 * 1000000);
	assert_int_equal(spans[1].from.ns, from + 4 * 1000000);
	assert_int_equal(spans[1].to.ns, from + 4 * 1000000);
	free(spans);
	windows_free(t.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_schedule, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nested, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_marks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_merged, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
