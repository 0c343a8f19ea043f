/* SPDX-License-Identifier: GPL-2.0-only */
/* Which mappings share a set, and which sets get more. No file can be opened here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernel/stack_mappings.h"
#include "stacks/stack_sets.h"

enum { SEED = 7, OTHERS_SEED = 8 };

static struct stack_sets sets;
static struct unwinder *unwinder;

static int begin(void **state)
{
	(void)state;
	unwinder = unwinder_new(false);
	return unwinder ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	stack_sets_end(&sets);
	unwinder_free(unwinder);
	return 0;
}

/* The file f of "abc" is mapped at f * 1 MiB; of "aBc" b is another one there. */
static struct stack_mappings mapped(const char *files)
{
	const size_t n = strlen(files);
	struct stack_mappings m = {.list = calloc(n, sizeof(*m.list)), .n = n};

	assert_non_null(m.list);
	for (size_t i = 0; i < n; i++) {
		m.list[i].start = (uint64_t)(files[i] | 32) << 20;
		m.list[i].end = m.list[i].start + 4096;
		m.list[i].inode = (uint64_t)files[i];
		m.list[i].path = strdup("file");
	}
	return m;
}

static uint32_t set_of_user(const char *files, uint64_t seed)
{
	struct stack_mappings m = mapped(files);
	uint32_t set = UINT32_MAX;
	bool lacks = false;

	assert_int_equal(stack_sets_of(&sets, unwinder, 1, &m, seed, &set, &lacks), UNWIND_WHOLE);
	assert_false(lacks);
	stack_mappings_free(&m);
	return set;
}

static uint32_t set_of(const char *files)
{
	return set_of_user(files, SEED);
}

static void test_the_same(void **state)
{
	const uint32_t set = set_of("abc");

	(void)state;
	assert_int_equal(set_of("abc"), set);
	assert_int_equal(sets.n, 1);
	assert_int_not_equal(set_of_user("abc", OTHERS_SEED), set);
}

/* Also in between and before. A child that was forked before may have other code where its parent
 * has more now. */
static void test_more(void **state)
{
	const uint32_t set = set_of("bd");

	(void)state;
	assert_int_equal(set_of("bde"), set);
	assert_int_equal(set_of("bcde"), set);
	assert_int_equal(set_of("abcdef"), set);
	assert_int_equal(sets.n, 1);
	assert_int_not_equal(set_of("bd"), set);
	assert_int_not_equal(set_of("bde"), set);
	assert_int_equal(set_of("abcdef"), set);
	assert_int_not_equal(set_of_user("abcdefg", OTHERS_SEED), set);
}

/* What is gone may be another's place now. */
static void test_less_and_others(void **state)
{
	const uint32_t set = set_of("abc");

	(void)state;
	assert_int_not_equal(set_of("ab"), set);
	assert_int_not_equal(set_of("aBc"), set);
	assert_int_not_equal(set_of("aBcd"), set);
	assert_int_equal(set_of("abcd"), set);
}

/* Two that go on from the same: the second one's more is not in the first one's way. */
static void test_two_ways(void **state)
{
	const uint32_t first = set_of("abx"), second = set_of("abX");

	(void)state;
	assert_int_not_equal(first, second);
	assert_int_equal(set_of("abxy"), first);
	assert_int_equal(set_of("abXy"), second);
}

static void test_bounds(void **state)
{
	struct stack_mappings m = mapped("a");
	enum unwind_end found = UNWIND_WHOLE;
	uint32_t set, n = 0;

	(void)state;
	for (; found == UNWIND_WHOLE && n <= UNWIND_MAX_SETS; n++) {
		m.list[0].inode = n;
		found = stack_sets_of(&sets, unwinder, 1, &m, SEED, &set, NULL);
		while (found == UNWIND_OVERRUN) { /* the child is behind */
			unwinder_wait(unwinder, 10);
			found = stack_sets_of(&sets, unwinder, 1, &m, SEED, &set, NULL);
		}
	}
	assert_int_equal(found, UNWIND_TOO_MANY);
	assert_int_equal(n, UNWIND_MAX_SETS + 1);
	m.list[0].inode = 3; /* one that is known */
	assert_int_equal(stack_sets_of(&sets, unwinder, 1, &m, SEED, &set, NULL), UNWIND_WHOLE);
	stack_mappings_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_same, begin, end),
		cmocka_unit_test_setup_teardown(test_more, begin, end),
		cmocka_unit_test_setup_teardown(test_less_and_others, begin, end),
		cmocka_unit_test_setup_teardown(test_two_ways, begin, end),
		cmocka_unit_test_setup_teardown(test_bounds, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
