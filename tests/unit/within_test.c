/* SPDX-License-Identifier: GPL-2.0-only */
/* What counts of waits with windows, row by row: model/within.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/within.h"

/* Takes a row at that time and returns the sleep that it has. */
static uint64_t row(struct within *w, uint64_t ns, uint64_t slept)
{
	struct profile_usage usage = {.sleep_ns = slept, .cpu_ns = 7 * ns};

	within_usage(w, &usage, ns);
	assert_int_equal(usage.cpu_ns, 7 * ns);
	return usage.sleep_ns;
}

static void test_without_windows(void **state)
{
	struct profile_usage usage = {.sleep_ns = 5};
	struct within w = {0};

	(void)state;
	assert_int_equal(row(&w, 10, 3), 3);
	within_forget(&w, &usage);
	assert_int_equal(usage.sleep_ns, 5);
	assert_int_equal(w.open_ns, 0);
}

/* What is counted before a window and after it is left out. */
static void test_windows(void **state)
{
	struct profile_usage usage = {.sleep_ns = 5, .lock_wait_ns = 1, .cpu_ns = 9};
	struct within w = {.is_asked = true};

	(void)state;
	assert_int_equal(row(&w, 1, 0), 0);
	assert_int_equal(row(&w, 2, 15), 0);
	w.is_open = true;
	assert_int_equal(row(&w, 3, 30), 15);
	w.is_open = false;
	assert_int_equal(row(&w, 4, 32), 15);
	w.is_open = true;
	assert_int_equal(row(&w, 6, 36), 19);
	assert_int_equal(row(&w, 7, 36), 19);
	assert_int_equal(w.open_ns, 4);
	within_forget(&w, &usage);
	assert_int_equal(usage.sleep_ns + usage.lock_wait_ns, 0);
	assert_int_equal(usage.cpu_ns, 9);
}

/* Rows of two CPUs in the wrong order: nothing counts twice, and nothing falls. */
static void test_disorder(void **state)
{
	struct within w = {.is_asked = true, .is_open = true};

	(void)state;
	assert_int_equal(row(&w, 5, 50), 50);
	assert_int_equal(row(&w, 4, 40), 50);
	assert_int_equal(row(&w, 6, 60), 60);
	assert_int_equal(w.open_ns, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_windows),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_disorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
