/* SPDX-License-Identifier: GPL-2.0-only */
/* No measurement is lost to the next one, and none to one that never began. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/keep.h"

/* Each test is in a folder of its own. */
static int enter_folder(void **state)
{
	char folder[] = "/tmp/qprof-keep-XXXXXX";

	*state = NULL;
	return !mkdtemp(folder) || chdir(folder) || !(*state = strdup(folder));
}

static int leave_folder(void **state)
{
	static const char *const names[] = {"q", "q.old", "q.old~", "victim"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		remove(names[i]);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(*state), 0); /* nothing else was made */
	free(*state);
	return 0;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* What a file has; NULL: there is none. */
static void has(const char *name, const char *expected)
{
	char text[64];
	FILE *file = fopen(name, "r");
	size_t n;

	if (!file && !expected)
		return;
	if (!file || !expected)
		fail_msg("%s: expected %s, got %s", name, expected ? expected : "no file",
			 file ? "a file" : "none");
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	if (strcmp(text, expected) != 0)
		fail_msg("%s: expected '%s', got '%s'", name, expected, text);
}

/* Measures something that writes "new", and that begins or does not. Returns what keep_open() did.
 */
static int measure(bool begins, struct error *err)
{
	struct keep k = {0};
	int fd = keep_open(&k, "q", err);

	if (fd >= 0) {
		assert_int_equal(file_write(fd, "new", 3), 0);
		if (begins)
			keep_begun(&k);
		close(fd);
	}
	keep_close(&k);
	return fd;
}

static void measures(bool begins)
{
	struct error err = {0};

	if (measure(begins, &err) < 0)
		fail_msg("expected a file, got: %s", err.text);
}

static void test_the_one_before_is_kept(void **state)
{
	(void)state;
	put("q", "A");
	measures(true);
	has("q", "new");
	has("q.old", "A");
	put("q", "B");
	measures(true);
	has("q", "new");
	has("q.old", "B");
	has("q.old~", NULL);
}

static void test_one_that_does_not_begin_leaves_all_as_it_was(void **state)
{
	(void)state;
	put("q", "A");
	measures(false);
	has("q", "A");
	has("q.old", NULL);
	put("q.old", "B");
	measures(false);
	has("q", "A");
	has("q.old", "B");
	has("q.old~", NULL);
}

/* As a run that was killed before it began leaves it: what was kept stays through the next. */
static void test_an_empty_file_is_not_worth_keeping(void **state)
{
	(void)state;
	put("q", "");
	put("q.old", "A");
	measures(true);
	has("q", "new");
	has("q.old", "A");
}

static void test_where_nothing_was_nothing_is_kept(void **state)
{
	(void)state;
	measures(true);
	has("q", "new");
	has("q.old", NULL);
}

static void test_who_may_read_it_stays(void **state)
{
	struct stat st;

	(void)state;
	put("q", "A");
	assert_int_equal(chmod("q", 0600), 0);
	measures(true);
	assert_int_equal(stat("q", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void refused(const char *why)
{
	struct error err = {0};

	assert_int_equal(measure(true, &err), -1);
	if (!strstr(err.text, why))
		fail_msg("expected '%s' in: %s", why, err.text);
}

static void test_a_link_is_neither_followed_nor_moved(void **state)
{
	struct stat st;

	(void)state;
	put("victim", "precious");
	assert_int_equal(symlink("victim", "q"), 0);
	refused("symbolic link");
	has("victim", "precious");
	assert_int_equal(lstat("q", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	has("q.old", NULL);
}

static void test_only_a_file_gives_way(void **state)
{
	(void)state;
	put("q", "A");
	put("victim", "precious");
	assert_int_equal(symlink("victim", "q.old"), 0);
	refused("cannot keep what 'q' has as 'q.old': File exists");
	has("q", "A");
	has("q.old", "precious");
	assert_int_equal(unlink("q.old"), 0);
	assert_int_equal(mkdir("q.old", 0755), 0);
	refused("cannot keep what 'q' has as 'q.old': File exists");
	has("q", "A");
}

static void test_what_is_no_file_is_not_moved(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(mkdir("q", 0755), 0);
	refused("Is a directory");
	assert_int_equal(rmdir("q"), 0);
	assert_int_equal(mkfifo("q", 0644), 0);
	refused("No such device"); /* nobody reads it */
	assert_int_equal(lstat("q", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

static void test_stdout_is_no_name(void **state)
{
	struct keep k = {0};
	struct error err = {0};
	int fd = keep_open(&k, "-", &err);

	(void)state;
	assert_true(fd >= 0);
	assert_false(k.moved);
	close(fd);
	keep_begun(&k);
	keep_close(&k);
}

int main(void)
{
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
	const struct CMUnitTest tests[] = {
		IN_A_FOLDER(test_the_one_before_is_kept),
		IN_A_FOLDER(test_one_that_does_not_begin_leaves_all_as_it_was),
		IN_A_FOLDER(test_an_empty_file_is_not_worth_keeping),
		IN_A_FOLDER(test_where_nothing_was_nothing_is_kept),
		IN_A_FOLDER(test_who_may_read_it_stays),
		IN_A_FOLDER(test_a_link_is_neither_followed_nor_moved),
		IN_A_FOLDER(test_only_a_file_gives_way),
		IN_A_FOLDER(test_what_is_no_file_is_not_moved),
		IN_A_FOLDER(test_stdout_is_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
