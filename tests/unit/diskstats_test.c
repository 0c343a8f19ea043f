/* SPDX-License-Identifier: GPL-2.0-only */
/* What /proc/diskstats says, as kernels write it and as it might go wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/diskstats.h"

static int is_sd(const char *name)
{
	return !strncmp(name, "sd", 2) && strlen(name) == 3;
}

static struct diskstats parse(const char *text)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	struct diskstats out;

	assert_non_null(file);
	assert_int_equal(diskstats_parse(file, is_sd, &out), 0);
	fclose(file);
	return out;
}

static void whole_disks_are_taken(void **state)
{
	const struct diskstats got =
		parse("   8       0 sda 100 1 2000 5 200 2 4000 9 0 7 14 3 0 80 1 0 0\n"
		      "   8       1 sda1 90 1 1000 5 200 2 4000 9 0 7 14 0 0 0 0 0 0\n"
		      "   8      16 sdb 1 0 8 5 2 0 16 9 0 7 14\n");

	(void)state;
	assert_int_equal(got.n, 2);
	assert_string_equal(got.devices[0].name, "sda");
	assert_int_equal(got.devices[0].read, 2000 * 512);
	assert_int_equal(got.devices[0].written, 4000 * 512);
	assert_int_equal(got.devices[1].read, 8 * 512);
}

static void what_makes_no_sense_is_left_out(void **state)
{
	char many[DISKSTATS_MAX * 40 * 2] = "";
	struct diskstats got;

	(void)state;
	got = parse("\n8 0\n8 0 sda\n8 0 sda x y z\n8 0 "
		    "sdaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1 1 1 1 1 1 1\n");
	assert_int_equal(got.n, 0);
	for (int i = 0; i < DISKSTATS_MAX + 5; i++)
		strcat(many, "8 0 sda 1 1 1 1 1 1 1 1 1 1 1\n");
	got = parse(many);
	assert_int_equal(got.n, DISKSTATS_MAX);
	assert_int_equal(got.dropped, 5);
}

static void difference_is_of_the_same_device(void **state)
{
	const struct diskstats before = parse("8 0 sda 1 0 100 0 1 0 200 0 0 0 0\n"
					      "8 16 sdb 1 0 900 0 1 0 900 0 0 0 0\n");
	struct diskstats now = parse("8 0 sda 1 0 150 0 1 0 260 0 0 0 0\n"
				     "8 16 sdb 1 0 10 0 1 0 20 0 0 0 0\n"
				     "8 32 sdc 1 0 30 0 1 0 40 0 0 0 0\n");

	(void)state;
	diskstats_since(&now, &before);
	assert_int_equal(now.devices[0].read, 50 * 512);
	assert_int_equal(now.devices[0].written, 60 * 512);
	assert_int_equal(now.devices[1].read, 10 * 512); /* pulled, and another plugged in */
	assert_int_equal(now.devices[2].written, 40 * 512);
}

static void this_machine_is_read(void **state)
{
	struct diskstats got;

	(void)state;
	assert_int_equal(diskstats_read(&got), 0);
	for (size_t i = 0; i < got.n; i++)
		assert_true(strncmp(got.devices[i].name, "loop", 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_disks_are_taken),
		cmocka_unit_test(what_makes_no_sense_is_left_out),
		cmocka_unit_test(difference_is_of_the_same_device),
		cmocka_unit_test(this_machine_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
