/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that the executable carries: where they are unpacked, what they may be read by, and where
 * not. */
#include <dirent.h>
#include <ftw.h>
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

#include "base/unpacked.h"

static const char one[] = "one", two[] = "two\0\n";

/* The ends leave out the last zero, as in the table of an executable. */
static const struct unpacked_file files[] = {
	{"share/a/b.yaml", one, one + sizeof(one) - 1},
	{"share/a/c.yaml", two, two + sizeof(two) - 1},
	{"lib/empty", one, one},
	{NULL, NULL, NULL},
};
static const struct unpacked_file others[] = {
	{"share/a/b.yaml", two, two + sizeof(two) - 1},
	{NULL, NULL, NULL},
};

static char parent[] = "/tmp/qprof-unpacked-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return remove(path);
}

static int make_parent(void **state)
{
	(void)state;
	strcpy(parent + strlen(parent) - 6, "XXXXXX");
	return mkdtemp(parent) ? 0 : -1;
}

static int remove_parent(void **state)
{
	(void)state;
	return nftw(parent, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void assert_file(const char *directory, const struct unpacked_file *file)
{
	const size_t size = (size_t)(file->end - file->bytes);
	char path[256], text[16];
	struct stat st;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", directory, file->name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(st.st_size, size);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_int_equal(fread(text, 1, sizeof(text), in), size);
	assert_memory_equal(text, file->bytes, size);
	fclose(in);
}

static size_t entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* . and .. */
}

static void test_all_can_be_read_whatever_the_umask(void **state)
{
	const mode_t mask = umask(0077);
	char *directory = unpacked_in(parent, files), path[256];
	struct stat st;

	(void)state;
	umask(mask);
	assert_non_null(directory);
	for (const struct unpacked_file *file = files; file->name; file++)
		assert_file(directory, file);
	snprintf(path, sizeof(path), "%s/share/a", directory);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(stat(directory, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	free(directory);
}

static void test_once_for_the_same_files(void **state)
{
	char *first = unpacked_in(parent, files), *again = unpacked_in(parent, files);
	char *other = unpacked_in(parent, others);

	(void)state;
	assert_string_equal(first, again);
	assert_string_not_equal(first, other);
	assert_int_equal(entries(parent), 2);
	free(first);
	free(again);
	free(other);
}

static void test_a_missing_parent_is_made(void **state)
{
	char below[64];
	char *directory;

	(void)state;
	snprintf(below, sizeof(below), "%s/cache", parent);
	directory = unpacked_in(below, files);
	assert_non_null(directory);
	free(directory);
	strcat(below, "/no/such");
	assert_null(unpacked_in(below, files));
}

static void test_where_others_can_write_nothing_is_trusted(void **state)
{
	char *directory = unpacked_in(parent, files), link[64];

	(void)state;
	chmod(directory, 0775);
	assert_null(unpacked_in(parent, files));
	assert_int_equal(entries(parent), 1); /* nothing is left behind */
	chmod(directory, 0755);
	snprintf(link, sizeof(link), "%s/link", parent);
	assert_int_equal(symlink(directory, link), 0);
	assert_null(unpacked_in(link, files));
	assert_int_equal(chmod(parent, 0777), 0);
	assert_null(unpacked_in(parent, others));
	free(directory);
}

static void test_what_somebody_else_owns_is_not_trusted(void **state)
{
	char *directory = unpacked_in(parent, files);

	(void)state;
	if (chown(directory, 1, 1))
		print_message("only root can give it away\n");
	else
		assert_null(unpacked_in(parent, files));
	free(directory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_parent, remove_parent)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_can_be_read_whatever_the_umask),
		TEST(test_once_for_the_same_files),
		TEST(test_a_missing_parent_is_made),
		TEST(test_where_others_can_write_nothing_is_trusted),
		TEST(test_what_somebody_else_owns_is_not_trusted),
	};

	return cmocka_run_group_tests_name("unpacked", tests, NULL, NULL);
}
