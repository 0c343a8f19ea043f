/* SPDX-License-Identifier: GPL-2.0-only */
/* The path of a cgroup, which comes name by name, the last first. */
#include "model/deaths.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void is_path(const char *names, size_t size, uint32_t n, bool cut, const char *expected)
{
	char *path = deaths_path(names, size, n, cut);

	assert_non_null(path);
	assert_string_equal(path, expected);
	free(path);
}

static void paths(void **state)
{
	static const char names[] = "job\0docker";

	(void)state;
	is_path(names, sizeof(names), 2, false, "/docker/job");
	is_path(names, sizeof(names), 1, false, "/job");
	is_path(names, sizeof(names), 1, true, ".../job");
	is_path(names, sizeof(names), 0, false, "/");
	is_path("caf\xe9", 5, 1, false, "/caf\xef\xbf\xbd");
}

/* The count is from the kernel side, and the bytes are as they may: nothing beyond them is read. */
static void names_that_do_not_end(void **state)
{
	char full[WIRE_PATH_MAX], single[WIRE_PATH_MAX], *path;

	(void)state;
	memset(full, 'x', sizeof(full));
	is_path(full, sizeof(full), 3, false, "/");
	is_path("a\0b", 3, 5, false, "/a");
	full[sizeof(full) - 1] = '\0';
	path = deaths_path(full, sizeof(full), 1, true);
	assert_int_equal(strlen(path), strlen(".../") + sizeof(full) - 1);
	free(path);
	for (size_t i = 0; i < sizeof(single); i++)
		single[i] = i & 1 ? '\0' : 'x';
	path = deaths_path(single, sizeof(single), UINT32_MAX, false);
	assert_int_equal(strlen(path) % strlen("/x"), 0);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(names_that_do_not_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
