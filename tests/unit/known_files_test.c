/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of searched files has a limit, at which it forgets what has no probes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/known_files.h"

enum { LIMIT = 8 };

static struct wire_file key_of(uint64_t inode)
{
	return (struct wire_file){.device = 1, .inode = inode};
}

static struct known_file *add(struct known_files *files, uint64_t inode)
{
	const struct wire_file key = key_of(inode);

	return known_files_add(files, &key);
}

static struct known_file *find(const struct known_files *files, uint64_t inode)
{
	const struct wire_file key = key_of(inode);

	return known_files_find(files, &key);
}

static void remove_all(struct known_files *files)
{
	while (files->first)
		known_files_remove(files, files->first);
}

static void test_takes_more_than_its_limit(void **state)
{
	struct known_files files = {.limit = LIMIT};
	struct known_file *attached = add(&files, 1);

	(void)state;
	attached->attached = true;
	for (uint64_t inode = 2; inode < 100 * LIMIT; inode++) {
		assert_non_null(add(&files, inode));
		assert_ptr_equal(find(&files, 1), attached);
		assert_non_null(find(&files, inode));
		assert_true(HASH_COUNT(files.first) <= LIMIT);
	}
	remove_all(&files);
}

static void test_keeps_what_has_probes_or_a_lease(void **state)
{
	struct known_files files = {.limit = LIMIT};

	(void)state;
	for (uint64_t inode = 1; inode <= LIMIT; inode++) {
		struct known_file *file = add(&files, inode);

		file->attached = inode % 2;
		file->lease = inode % 2 ? -1 : 1000;
	}
	assert_null(add(&files, LIMIT + 1));
	for (uint64_t inode = 1; inode <= LIMIT; inode++)
		assert_non_null(find(&files, inode));
	find(&files, 1)->attached = false;
	assert_non_null(add(&files, LIMIT + 1));
	assert_null(find(&files, 1));
	remove_all(&files);
}

static void test_forgets_what_was_not_used_for_the_longest_time(void **state)
{
	struct known_files files = {.limit = LIMIT};

	(void)state;
	for (uint64_t inode = 1; inode <= LIMIT; inode++)
		add(&files, inode);
	known_files_use(&files, find(&files, 1));
	find(&files, 2)->attached = true;
	assert_non_null(add(&files, LIMIT + 1));
	assert_null(find(&files, 3));
	for (uint64_t inode = 1; inode <= LIMIT + 1; inode++)
		assert_true(inode == 3 || find(&files, inode));
	remove_all(&files);
}

static void test_same_number_of_another_generation(void **state)
{
	struct known_files files = {.limit = LIMIT};
	struct wire_file key = key_of(1);

	(void)state;
	add(&files, 1);
	key.generation = 1;
	assert_null(known_files_find(&files, &key));
	assert_non_null(known_files_add(&files, &key));
	assert_int_equal(HASH_COUNT(files.first), 2);
	remove_all(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes_more_than_its_limit),
		cmocka_unit_test(test_keeps_what_has_probes_or_a_lease),
		cmocka_unit_test(test_forgets_what_was_not_used_for_the_longest_time),
		cmocka_unit_test(test_same_number_of_another_generation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
