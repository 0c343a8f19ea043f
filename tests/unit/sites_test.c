/* SPDX-License-Identifier: GPL-2.0-only */
/* No file takes the sites that others need. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/sites.h"

enum { ALL = 16384 };

enum { ROOT, ADA = 1000, GRACE };

/* A user's file with so many probes, of which it gets what it may have. Returns how many. */
static size_t search_of(struct sites *s, uint32_t group, uid_t owner, size_t probes)
{
	size_t n = 0;

	sites_begin_file(s, group, owner);
	for (; n < probes && sites_left_for_file(s); n++)
		assert_true(sites_add_name(s, "mark") >= 0);
	return n;
}

static size_t search(struct sites *s, size_t probes)
{
	return search_of(s, 1, ROOT, probes);
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

static void test_a_user_leaves_as_many_to_others(void **state)
{
	struct sites s = {0};

	(void)state;
	assert_int_equal(search_of(&s, 1, ADA, ALL / 4), ALL / 4);
	assert_int_equal(search_of(&s, 2, ADA, ALL), ALL / 4);
	assert_int_equal(search_of(&s, 3, ADA, 1), 0);
	assert_int_equal(sites_add_name(&s, "mark"), -EDQUOT);
	assert_int_equal(search_of(&s, 4, GRACE, ALL), ALL / 4);
	assert_int_equal(search_of(&s, 5, ROOT, 100), 100);
	sites_free(&s);
}

/* A day of files that come and go, of a user and of root. */
static void test_sites_are_given_back(void **state)
{
	struct sites s = {.most = 64};

	(void)state;
	for (uint32_t day = 0; day < 1000; day++) {
		assert_int_equal(search_of(&s, 2 * day + 1, ADA, 32), 32);
		assert_int_equal(search_of(&s, 2 * day + 2, ROOT, 16), 16);
		sites_retire(&s, 2 * day + 2);
		/* Not before all records are read: one may carry the index. */
		assert_int_equal(s.in_use, 48);
		assert_string_equal(sites_name(&s, 47), "mark");
		sites_give_back(&s);
		assert_int_equal(s.in_use, 32);
		sites_retire(&s, 2 * day + 1);
		sites_give_back(&s);
		assert_int_equal(s.in_use, 0);
		assert_string_equal(sites_name(&s, 0), "(unknown probe)");
	}
	assert_int_equal(s.n, 48);
	assert_null(s.owners);
	sites_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_leaves_as_many_as_it_takes),
		cmocka_unit_test(test_what_fits_is_whole),
		cmocka_unit_test(test_the_last_ones_are_shared_too),
		cmocka_unit_test(test_a_user_leaves_as_many_to_others),
		cmocka_unit_test(test_sites_are_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
