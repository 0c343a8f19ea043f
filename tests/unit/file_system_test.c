/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a file system is mounted, by /proc/self/mountinfo. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "kernel/file_system.h"

static char mounts[] = "24 1 8:1 / / rw - 9p root rw\n"
		       "nothing\n"
		       "25 24 0:22 / /tmp\\040dir\\134 rw shared:3 - tmpfs t rw\n"
		       "26 24 0:300 / /net rw - nfs4 host:/ rw\n"
		       "27 24 8:1 / /again rw - ext4 /dev/sda1 rw\n"
		       "28 24 8:17 / /stick rw - fuseblk /dev/sdb1 rw\n"
		       "29 26 8:18 / /net/scratch rw - xfs /dev/sdb2 rw\n"
		       "30 24 8:19 / /network rw - xfs /dev/sdb3 rw\n"
		       "31 24 0:23 / /again/o rw - overlay o rw\n";

static FILE *text(void)
{
	FILE *file = fmemopen(mounts, sizeof(mounts) - 1, "r");

	assert_non_null(file);
	return file;
}

static void finds(FILE *file, uint32_t device, unsigned int expected_id, const char *expected)
{
	char mount[32];
	unsigned int id;

	assert_int_equal(file_system_find(file, device, &id, mount, sizeof(mount)), !!expected);
	if (!expected)
		return;
	assert_string_equal(mount, expected);
	assert_int_equal(id, expected_id);
}

static void by_device(void **state)
{
	FILE *file = text();

	(void)state;
	finds(file, 8 << 20 | 1, 24, "/");
	finds(file, 22, 25, "/tmp dir\\");
	finds(file, 8 << 20 | 1, 27, "/again");
	finds(file, 8 << 20 | 1, 0, NULL);
	fclose(file);
}

static void too_long(void **state)
{
	FILE *file = text();
	char mount[4];
	unsigned int id;

	(void)state;
	assert_false(file_system_find(file, 300, &id, mount, sizeof(mount)));
	fclose(file);
}

static void is_near(const char *mount, bool expected)
{
	FILE *file = text();

	assert_int_equal(file_system_is_near(file, mount), expected);
	fclose(file);
}

/* Also what is below a server's directory is only reached through that. */
static void near(void **state)
{
	(void)state;
	is_near("/", false);
	is_near("/again", true);
	is_near("/tmp dir\\", true);
	is_near("/network", true);
	is_near("/net", false);
	is_near("/net/scratch", false);
	is_near("/stick", false);
	is_near("/again/o", false);
}

static void of_mount(unsigned int id, bool expected)
{
	FILE *file = text();

	assert_int_equal(file_system_of_mount_answers(file, id), expected);
	fclose(file);
}

static void by_mount(void **state)
{
	(void)state;
	of_mount(24, false);
	of_mount(25, true);
	of_mount(28, false);
	of_mount(29, true);
	of_mount(31, false);
	of_mount(99, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_device),
		cmocka_unit_test(too_long),
		cmocka_unit_test(near),
		cmocka_unit_test(by_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
