/* SPDX-License-Identifier: GPL-2.0-only */
/* Who wishes what: bits of lists, shares of users, and processes of jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/wishes.h"

struct job_list {
	struct wish_job of;
	struct wish_list list;
};

static uint64_t add(struct wishes *w, struct job_list *l, uint32_t job, uid_t uid)
{
	l->of = (struct wish_job){.job = job, .uid = uid};
	l->list = (struct wish_list){.of = &l->of};
	return wishes_add(w, &l->list);
}

static void test_a_user_leaves_as_many_to_others(void **state)
{
	static struct job_list first[20], second[20], last;
	struct wishes w = {0};
	uint32_t n = 0, more = 0;

	(void)state;
	while (n < 20 && add(&w, &first[n], n + 1, 7))
		n++;
	assert_int_equal(n, WISHES_OF_JOBS / 2);
	while (more < 20 && add(&w, &second[more], 100 + more, 8))
		more++;
	assert_int_equal(more, WISHES_OF_JOBS / 4);
	assert_int_equal(add(&w, &last, 200, 7), 0);
	for (uint32_t i = 0; i < n; i++)
		wishes_remove(&w, &first[i].list);
	assert_int_not_equal(add(&w, &last, 200, 7), 0);
	wishes_free(&w);
}

static void test_root_has_no_share_and_there_is_an_end(void **state)
{
	static struct job_list lists[WISHES_OF_JOBS + 1];
	struct wishes w = {0};

	(void)state;
	for (uint32_t i = 0; i < WISHES_OF_JOBS; i++)
		assert_int_not_equal(add(&w, &lists[i], i + 1, 0), 0);
	assert_int_equal(add(&w, &lists[WISHES_OF_JOBS], 99, 0), 0);
	wishes_free(&w);
}

static void test_recipes_have_the_rest(void **state)
{
	static struct wish_list recipes[WISHES_MAX + 1];
	static struct job_list job;
	struct wishes w = {0};
	uint64_t all = add(&w, &job, 1, 7);

	(void)state;
	assert_int_equal(w.of_jobs, all);
	for (size_t i = 0; i < WISHES_MAX - 1; i++) {
		const uint64_t bit = wishes_add(&w, &recipes[i]);

		assert_int_not_equal(bit, 0);
		assert_int_equal(all & bit, 0);
		assert_int_equal(wishes_add(&w, &recipes[i]), bit);
		all |= bit;
	}
	assert_int_equal(wishes_add(&w, &recipes[WISHES_MAX]), 0);
	wishes_free(&w);
}

static void test_processes(void **state)
{
	static struct wish_list recipe;
	static struct job_list job, another;
	struct wishes w = {0};
	const uint64_t of_recipe = wishes_add(&w, &recipe), of_job = add(&w, &job, 5, 7);

	(void)state;
	assert_int_equal(wishes_of_job(&w, 5), of_job);
	assert_int_equal(wishes_of_job(&w, 6), 0);
	wishes_use_of_job(&w, 42, of_job);
	wishes_use(&w, 42, of_recipe);
	wishes_use_of_job(&w, 43, of_job);
	assert_int_equal(wishes_of(&w, 42), of_job | of_recipe);
	wishes_use(&w, 42, 0);
	assert_int_equal(wishes_of(&w, 42), of_job);
	wishes_use(&w, 42, of_recipe);
	wishes_remove(&w, &job.list);
	assert_int_equal(wishes_of(&w, 42), of_recipe);
	assert_int_equal(wishes_of(&w, 43), 0);
	/* Whoever has the bit next has no processes yet. */
	assert_int_equal(add(&w, &another, 6, 8), of_job);
	assert_int_equal(wishes_of(&w, 42), of_recipe);
	wishes_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_leaves_as_many_to_others),
		cmocka_unit_test(test_root_has_no_share_and_there_is_an_end),
		cmocka_unit_test(test_recipes_have_the_rest),
		cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
