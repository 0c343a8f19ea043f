/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/path_parts.h"

static void there_and_back(void **state)
{
	static const char *const paths[] = {"/a", "/data/model.bin", "/a/b/c/d", "/a b/\n\t/\xff"};
	char parts[64], path[66];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		const size_t len = parts_of_path(parts, sizeof(parts), paths[i]);

		assert_int_equal(len, strlen(paths[i]));
		path_of_parts(path, parts, len);
		assert_string_equal(path, paths[i]);
	}
	assert_memory_equal(parts, "\xff\0\n\t\0a b", 8);
}

/* What is told may end without a NUL: nothing is read behind it. */
static void end_is_cut(void **state)
{
	char path[8];

	(void)state;
	path_of_parts(path, "b\0axx", 3);
	assert_string_equal(path, "/a/b");
	path_of_parts(path, "", 0);
	assert_string_equal(path, "");
}

static void no_room(void **state)
{
	char parts[6];

	(void)state;
	assert_int_equal(parts_of_path(parts, sizeof(parts), "/abcde"), 6);
	assert_int_equal(parts_of_path(parts, sizeof(parts), "/abcdef"), 0);
	assert_int_equal(parts_of_path(parts, sizeof(parts), "/a/b/c/d"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(end_is_cut),
		cmocka_unit_test(no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
