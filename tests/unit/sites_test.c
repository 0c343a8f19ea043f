/* SPDX-License-Identifier: GPL-2.0-only */
/* No file takes the sites that others need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/sites.h"

enum { ALL = 16384 };

/* A file with so many probes, of which it gets what it may have. Returns how many. */
static size_t search(struct sites *s, size_t probes)
{
	size_t n = 0;

	sites_begin_file(s);
	for (; n < probes && sites_left_for_file(s); n++)
		assert_true(sites_add_name(s, "mark") >= 0);
	return n;
}

static void test_a_file_leaves_as_many_as_it_takes(void **state)
{
	struct sites s = {0};

	(void)state;
	assert_int_equal(sites_left_for_file(&s), ALL / 2);
	assert_int_equal(search(&s, ALL), ALL / 2);
	assert_int_equal(search(&s, 10), 10);
	assert_int_equal(search(&s, ALL), (ALL / 2 - 10) / 2);
	sites_free(&s);
}

static void test_what_fits_is_whole(void **state)
{
	struct sites s = {0};

	(void)state;
	assert_int_equal(search(&s, ALL / 2), ALL / 2);
	for (int i = 0; i < 100; i++)
		assert_int_equal(search(&s, 40), 40);
	sites_free(&s);
}

static void test_the_last_ones_are_shared_too(void **state)
{
	struct sites s = {0};
	size_t sum = 0, n;

	(void)state;
	while ((n = search(&s, ALL)))
		sum += n;
	assert_int_equal(sum, ALL);
	sites_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_leaves_as_many_as_it_takes),
		cmocka_unit_test(test_what_fits_is_whole),
		cmocka_unit_test(test_the_last_ones_are_shared_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
