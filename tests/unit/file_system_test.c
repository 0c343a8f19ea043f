/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a file system is mounted, by /proc/self/mountinfo. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "kernel/file_system.h"

static const char mounts[] = "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
			     "nothing\n"
			     "25 24 0:22 / /tmp\\040dir\\134 rw shared:3 - tmpfs t rw\n"
			     "26 24 0:300 / /net rw - nfs4 host:/ rw\n"
			     "27 24 8:1 / /again rw - ext4 /dev/sda1 rw\n";

static void finds(uint32_t device, const char *expected, bool local)
{
	FILE *file = fmemopen((void *)mounts, sizeof(mounts) - 1, "r");
	char mount[32];
	bool is_local = !local;

	assert_non_null(file);
	assert_int_equal(file_system_find(file, device, mount, sizeof(mount), &is_local),
			 !!expected);
	if (expected) {
		assert_string_equal(mount, expected);
		assert_int_equal(is_local, local);
	}
	fclose(file);
}

static void by_device(void **state)
{
	(void)state;
	finds(8 << 20 | 1, "/", true);
	finds(22, "/tmp dir\\", true);
	finds(300, "/net", false);
	finds(8 << 20 | 2, NULL, false);
}

static void too_long(void **state)
{
	FILE *file = fmemopen((void *)mounts, sizeof(mounts) - 1, "r");
	char mount[4];
	bool is_local;

	(void)state;
	assert_non_null(file);
	assert_false(file_system_find(file, 300, mount, sizeof(mount), &is_local));
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_device),
		cmocka_unit_test(too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
