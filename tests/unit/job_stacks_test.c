/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions that most of a job's memory and CPU time is charged to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/job_stacks.h"

/* Sums of memory, to be freed. */
static struct job_stacks *sum(struct job_samples *s, uint64_t all)
{
	struct job_stacks *stacks = calloc(1, sizeof(*stacks));

	assert_int_equal(
		job_samples_sum(s, JOB_STACKS_MEMORY, all, 9, &stacks->of[JOB_STACKS_MEMORY]), 0);
	job_samples_free(s);
	return stacks;
}

/* Whatever the order they come in, and in however many samples. */
static void largest_come_first(void **state)
{
	static const int order[] = {3, 7, 1, 6, 2, 5, 4};
	struct job_samples *s = job_samples_new();
	const struct job_functions *of;
	struct job_stacks *stacks;
	char name[8];

	(void)state;
	for (size_t twice = 0; twice < 2; twice++)
		for (size_t i = 0; i < 7; i++) {
			snprintf(name, sizeof(name), "f%d", order[i]);
			assert_true(job_samples_add(s, name, "/a", JOB_STACKS_MEMORY,
						    (uint64_t)order[i] * 50));
		}
	assert_true(job_samples_add(s, "cpu", "/a", JOB_STACKS_CPU, 1000000));
	stacks = sum(s, 3000);
	of = &stacks->of[JOB_STACKS_MEMORY];
	assert_true(of->is_sampled && !stacks->of[JOB_STACKS_CPU].is_sampled);
	assert_int_equal(of->n, JOB_STACKS_MOST);
	for (size_t i = 0; i < of->n; i++) {
		snprintf(name, sizeof(name), "f%d", (int)(7 - i));
		assert_string_equal(of->list[i].name, name);
		assert_int_equal(of->list[i].amount, (7 - i) * 100);
	}
	assert_int_equal(of->others, 2);
	assert_int_equal(of->other_amount, 300);
	assert_int_equal(of->all, 3000);
	assert_int_equal(of->unsampled, 200);
	assert_int_equal(of->samples, 9);
	job_stacks_free(stacks);
}

/* A function is a name in a file. Texts come from programs. */
static void same_names_in_other_files(void **state)
{
	struct job_samples *s = job_samples_new();
	const struct job_functions *of;
	struct job_stacks *stacks;

	(void)state;
	job_samples_add(s, "f", "/a", JOB_STACKS_MEMORY, 3);
	job_samples_add(s, "f", "/b", JOB_STACKS_MEMORY, 2);
	job_samples_add(s, "f/a", "", JOB_STACKS_MEMORY, 1);
	job_samples_add(s, "\xff\x1b", "/a", JOB_STACKS_MEMORY, 4);
	job_samples_add(s, "", "/lib/libx.so", JOB_STACKS_MEMORY, 5);
	stacks = sum(s, 5);
	of = &stacks->of[JOB_STACKS_MEMORY];
	assert_int_equal(of->n, 5);
	assert_string_equal(of->list[0].name, "[libx.so]");
	assert_string_equal(of->list[1].name, "\xef\xbf\xbd\x1b");
	assert_string_equal(of->list[2].path, "/a");
	assert_string_equal(of->list[3].path, "/b");
	assert_string_equal(of->list[4].name, "f/a");
	assert_int_equal(of->unsampled, 0);
	job_stacks_free(stacks);
}

static void bounded(void **state)
{
	struct job_samples *s = job_samples_new();
	struct job_stacks *stacks;
	char name[600];

	(void)state;
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_true(job_samples_add(s, name, name, JOB_STACKS_MEMORY, 100));
	for (int i = 1; i < JOB_STACKS_FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		assert_true(job_samples_add(s, name, "", JOB_STACKS_MEMORY, 1));
	}
	assert_false(job_samples_add(s, "one more", "", JOB_STACKS_MEMORY, 10));
	assert_true(job_samples_add(s, "f1", "", JOB_STACKS_MEMORY, 1));
	stacks = sum(s, 2000);
	assert_int_equal(strlen(stacks->of[JOB_STACKS_MEMORY].list[0].path), JOB_STACKS_TEXT);
	assert_string_equal(stacks->of[JOB_STACKS_MEMORY].list[1].name, "f1");
	assert_int_equal(stacks->of[JOB_STACKS_MEMORY].other_amount,
			 10 + JOB_STACKS_FUNCTIONS - JOB_STACKS_MOST);
	assert_int_equal(stacks->of[JOB_STACKS_MEMORY].unsampled,
			 2000 - 100 - JOB_STACKS_FUNCTIONS - 10);
	job_stacks_free(stacks);
}

static void nothing(void **state)
{
	struct job_stacks *stacks = sum(job_samples_new(), 0);

	(void)state;
	assert_int_equal(stacks->of[JOB_STACKS_MEMORY].n, 0);
	assert_int_equal(stacks->of[JOB_STACKS_MEMORY].unsampled, 0);
	job_stacks_free(stacks);
	job_stacks_free(NULL);
	job_samples_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(largest_come_first),
		cmocka_unit_test(same_names_in_other_files),
		cmocka_unit_test(bounded),
		cmocka_unit_test(nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
