/* SPDX-License-Identifier: GPL-2.0-only */
/* The files that a job of an audit used most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/job_files.h"

static struct wire_file number(uint64_t inode)
{
	return (struct wire_file){.device = 8 << 20 | 1, .inode = inode};
}

static void add(struct job_files *files, const struct job_names *names, uint64_t inode,
		uint64_t read, uint64_t written)
{
	struct wire_stored sums = {.file = number(inode), .read = read, .written = written};

	assert_int_equal(job_files_add(files, names, &sums), 0);
}

static void keep(struct job_names *names, uint64_t inode, const char *name)
{
	const struct wire_file file = number(inode);

	job_names_keep(names, &file, strdup(name));
}

/* The largest are named, whatever the order they come in; the others are a sum. */
static void largest_come_first(void **state)
{
	struct job_files *files = calloc(1, sizeof(*files));
	static const uint64_t order[] = {3, 7, 1, 6, 2, 5, 4};
	struct job_names names = {0};
	char name[8];

	(void)state;
	for (uint64_t i = 1; i <= 7; i++) {
		snprintf(name, sizeof(name), "/%d", (int)i);
		keep(&names, i, name);
	}
	for (size_t i = 0; i < 7; i++)
		add(files, &names, order[i], order[i] * 100, order[i]);
	assert_int_equal(files->n, JOB_FILES_MOST);
	for (size_t i = 0; i < files->n; i++) {
		snprintf(name, sizeof(name), "/%d", (int)(7 - i));
		assert_string_equal(files->list[i].path, name);
		assert_int_equal(files->list[i].read, (7 - i) * 100);
		assert_int_equal(files->list[i].written, 7 - i);
	}
	assert_int_equal(files->others, 2);
	assert_int_equal(files->other_read, 300);
	assert_int_equal(files->other_written, 3);
	job_names_free(&names);
	job_files_free(files);
}

/* What is of no file is in the rest, and what was not used is nowhere. */
static void rest(void **state)
{
	struct job_files *files = calloc(1, sizeof(*files));
	struct wire_stored metadata = {.file.inode = WIRE_STORED_METADATA, .written = 4096};
	struct job_names names = {0};

	(void)state;
	assert_int_equal(job_files_add(files, &names, &metadata), 0);
	add(files, &names, 7, 0, 0);
	assert_int_equal(files->n, 0);
	assert_int_equal(files->others, 0);
	assert_int_equal(files->other_written, 4096);
	job_files_free(files);
}

/* Of what was written, and whose inode has left the memory, nobody knows whether it was removed:
 * unless it had no name before. */
static void removed_or_not(void **state)
{
	static const struct {
		uint64_t written;
		uint32_t flags;
		bool is_deleted, is_unsure;
	} all[JOB_FILES_MOST] = {
		{9, WIRE_STORED_LAST | WIRE_STORED_GONE, false, true},
		{8, WIRE_STORED_LAST | WIRE_STORED_GONE | WIRE_STORED_DELETED, true, false},
		{7, WIRE_STORED_LAST | WIRE_STORED_DELETED, true, false},
		{6, WIRE_STORED_LAST, false, false},
		{0, WIRE_STORED_LAST | WIRE_STORED_GONE, false, false},
	};
	struct job_files *files = calloc(1, sizeof(*files));
	const struct job_names none = {0};

	(void)state;
	for (size_t i = 0; i < JOB_FILES_MOST; i++) {
		const struct wire_stored sums = {.file = number(i + 1),
						 .read = 1,
						 .written = all[i].written,
						 .flags = all[i].flags};

		assert_int_equal(job_files_add(files, &none, &sums), 0);
	}
	for (size_t i = 0; i < JOB_FILES_MOST; i++) {
		assert_int_equal(files->list[i].written, all[i].written);
		assert_int_equal(files->list[i].is_deleted, all[i].is_deleted);
		assert_int_equal(files->list[i].is_unsure, all[i].is_unsure);
	}
	job_files_free(files);
}

/* A file without a name has its number; one that is named again has the last name. */
static void names_of_files(void **state)
{
	struct job_files *files = calloc(1, sizeof(*files));
	struct wire_stored sums = {.file = number(8), .written = 1, .flags = WIRE_STORED_DELETED};
	struct job_names names = {0};
	const struct wire_file one = number(7);
	size_t bytes;

	(void)state;
	assert_false(job_names_has(&names, &one));
	keep(&names, 7, "/model.tmp");
	assert_true(job_names_has(&names, &one));
	bytes = names.bytes;
	keep(&names, 7, "/model");
	assert_int_equal(names.bytes, bytes - strlen(".tmp"));
	add(files, &names, 7, 2, 0);
	assert_int_equal(job_files_add(files, &names, &sums), 0);
	assert_string_equal(files->list[0].path, "/model");
	assert_false(files->list[0].is_deleted);
	assert_string_equal(files->list[1].path, "(inode 8 of 8:1)");
	assert_true(files->list[1].is_deleted);
	job_names_free(&names);
	assert_int_equal(names.bytes, 0);
	job_files_free(files);
	job_files_free(NULL);
}

/* While a job goes on, all comes at once, in no order; places may be empty. */
static void taken_while_it_goes_on(void **state)
{
	const struct wire_stored_largest largest = {
		.of = {{.file = number(1), .read = 100},
		       {.file = number(2), .written = 300, .flags = WIRE_STORED_DELETED},
		       {.file = {0}},
		       {.file = number(3), .read = 1, .written = 1}},
		.files = 7,
		.read = 120,
		.written = 304,
	};
	struct job_files *files = calloc(1, sizeof(*files));
	struct job_names names = {0};

	(void)state;
	keep(&names, 1, "/model");
	assert_int_equal(job_files_take(files, &names, &largest), 0);
	assert_int_equal(files->n, 3);
	assert_string_equal(files->list[0].path, "(inode 2 of 8:1)");
	assert_true(files->list[0].is_deleted);
	assert_int_equal(files->list[0].written, 300);
	assert_string_equal(files->list[1].path, "/model");
	assert_int_equal(files->list[1].read, 100);
	assert_int_equal(files->list[2].read + files->list[2].written, 2);
	assert_int_equal(files->others, 4);
	assert_int_equal(files->other_read, 19);
	assert_int_equal(files->other_written, 3);
	job_names_free(&names);
	job_files_free(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(largest_come_first),	  cmocka_unit_test(rest),
		cmocka_unit_test(removed_or_not),	  cmocka_unit_test(names_of_files),
		cmocka_unit_test(taken_while_it_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
