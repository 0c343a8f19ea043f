/* SPDX-License-Identifier: GPL-2.0-only */
/* What getent(1) says is what libc says; without it, the files of local users are read. */
#include <grp.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/getent.h"

#define UNKNOWN_UID 4000000123u

enum { MAX = 64 };

static char passwd[] = "/tmp/qprof-getent-passwd-XXXXXX",
	    group[] = "/tmp/qprof-getent-group-XXXXXX";

static void write_file(char *path, const char *text)
{
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_files(void **state)
{
	(void)state;
	write_file(passwd, "root:x:0:0:root:/root:/bin/sh\n"
			   "ada:x:1234567:100:Ada:/home/ada:/bin/sh\n");
	write_file(group, "root:x:0:\nusers:x:100:ada\nvideo:x:44:bob,ada\nother:x:45:bob\n");
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	unlink(passwd);
	unlink(group);
	return 0;
}

static const struct getent system_only = {"/usr/bin/getent", "/nonexistent", "/nonexistent"};
static const struct getent files_only = {"/nonexistent", passwd, group};

static bool has_getent(void)
{
	const bool has = !access(system_only.program, X_OK);

	if (!has)
		print_message("there is no %s here\n", system_only.program);
	return has;
}

static void test_users_are_those_of_libc(void **state)
{
	struct directory_user user;
	const struct passwd *entry;
	size_t n = 0;

	(void)state;
	if (!has_getent())
		return;
	for (setpwent(); n < 3 && (entry = getpwent()); n++) {
		assert_true(getent_user(&system_only, entry->pw_uid, &user));
		assert_string_equal(user.name, entry->pw_name);
		assert_string_equal(user.home, entry->pw_dir);
	}
	endpwent();
	assert_int_not_equal(n, 0);
	assert_false(getent_user(&system_only, UNKNOWN_UID, &user));
}

static int ascending(const void *a, const void *b)
{
	const gid_t left = *(const gid_t *)a, right = *(const gid_t *)b;

	return (left > right) - (left < right);
}

/* A member of a group of this machine, if it has any. */
static void test_groups_are_those_of_libc(void **state)
{
	const struct group *entry;
	gid_t ours[MAX], theirs[MAX];
	char name[DIRECTORY_NAME_MAX] = "root";
	int n = MAX;

	(void)state;
	if (!has_getent())
		return;
	for (setgrent(); (entry = getgrent());)
		if (*entry->gr_mem)
			snprintf(name, sizeof(name), "%s", *entry->gr_mem);
	endgrent();
	assert_true(getgrouplist(name, 7, theirs, &n) > 0);
	assert_int_equal(getent_groups(&system_only, name, 7, ours, MAX), n);
	assert_int_equal(ours[0], 7);
	qsort(ours, (size_t)n, sizeof(*ours), ascending);
	qsort(theirs, (size_t)n, sizeof(*theirs), ascending);
	assert_memory_equal(ours, theirs, (size_t)n * sizeof(*ours));
}

/* As of a directory service: a script stands in for it. */
static void test_a_name_with_blanks(void **state)
{
	static char script[] = "/tmp/qprof-getent-script-XXXXXX";
	const struct getent service = {script, "/nonexistent", "/nonexistent"};
	const gid_t expected[] = {100, 4, 1234567};
	gid_t gids[MAX];

	(void)state;
	write_file(script, "#!/bin/sh\nprintf '%s     4 100 1234567\\n' \"$2\"\n");
	assert_int_equal(chmod(script, 0700), 0);
	assert_int_equal(getent_groups(&service, "EXAMPLE\\ada 2 lovelace", 100, gids, MAX), 3);
	assert_memory_equal(gids, expected, sizeof(expected));
	unlink(script);
}

static void test_without_the_program_files_are_read(void **state)
{
	const gid_t expected[] = {100, 44};
	struct directory_user user;
	gid_t gids[MAX];

	(void)state;
	assert_true(getent_user(&files_only, 1234567, &user));
	assert_string_equal(user.name, "ada");
	assert_string_equal(user.home, "/home/ada");
	assert_int_equal(getent_groups(&files_only, "ada", 100, gids, MAX), 2);
	assert_memory_equal(gids, expected, sizeof(expected));
}

/* As of users whom another service knows: both are asked. */
static void test_files_know_whom_the_program_does_not(void **state)
{
	const struct getent both = {"/usr/bin/getent", passwd, group};
	struct directory_user user;

	(void)state;
	assert_true(getent_user(&both, 1234567, &user));
	assert_string_equal(user.name, "ada");
	assert_false(getent_user(&both, UNKNOWN_UID, &user));
}

static void test_groups_that_do_not_fit_are_left_out(void **state)
{
	gid_t gids[1];

	(void)state;
	assert_int_equal(getent_groups(&files_only, "ada", 100, gids, 1), 1);
	assert_int_equal(gids[0], 100);
}

static void test_nobody_knows(void **state)
{
	const struct getent nothing = {"/nonexistent", "/nonexistent", "/nonexistent"};
	struct directory_user user;
	gid_t gids[MAX];

	(void)state;
	assert_false(getent_user(&nothing, 0, &user));
	assert_int_equal(getent_groups(&nothing, "root", 3, gids, MAX), 1);
	assert_int_equal(gids[0], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users_are_those_of_libc),
		cmocka_unit_test(test_groups_are_those_of_libc),
		cmocka_unit_test(test_a_name_with_blanks),
		cmocka_unit_test(test_without_the_program_files_are_read),
		cmocka_unit_test(test_files_know_whom_the_program_does_not),
		cmocka_unit_test(test_groups_that_do_not_fit_are_left_out),
		cmocka_unit_test(test_nobody_knows),
	};

	return cmocka_run_group_tests_name("getent", tests, make_files, remove_files);
}
