/* SPDX-License-Identifier: GPL-2.0-only */
/* capacity_test.c - how many processes fit, whatever the number of CPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/wire.h"
#include "kernel/capacity.h"

enum { RUN = CAPACITY_RUN, AUDIT = CAPACITY_AUDIT, LARGE = 65536 };

static void test_few_cpus(void **state)
{
	const struct capacity c = capacity_for(AUDIT, 2);

	(void)state;
	assert_int_equal(c.processes, AUDIT);
	assert_int_equal(c.groups, 2);
	assert_int_equal(c.blocks, AUDIT);
	assert_int_equal(c.bytes, AUDIT * (2 * 4 + 2 * 16 + 12));
}

/* On up to 16 CPUs there is a block for each process, so nobody is ever summed. */
static void test_one_group(void **state)
{
	(void)state;
	for (uint32_t cpus = 1; cpus <= WIRE_GROUP_CPUS; cpus++)
		assert_int_equal(capacity_for(RUN, cpus).blocks, RUN);
}

static void test_many_cpus(void **state)
{
	const struct capacity run = capacity_for(RUN, 512), large = capacity_for(LARGE, 512);

	(void)state;
	assert_int_equal(run.processes, RUN);
	assert_int_equal(run.blocks, (CAPACITY_BYTES - RUN * 32 * 4) / 268);
	assert_int_equal(large.processes, CAPACITY_BYTES / (32 * 4 + 268));
	assert_in_range(large.blocks, large.processes, large.processes + 1);
}

static void test_bound(void **state)
{
	static const uint32_t wanted[] = {1, 100, RUN, LARGE, 1000000, UINT32_MAX};

	(void)state;
	for (uint32_t cpus = 1; cpus <= WIRE_MAX_CPUS; cpus++)
		for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
			const struct capacity c = capacity_for(wanted[i], cpus);

			assert_in_range(c.processes, 1, wanted[i]);
			assert_in_range(c.bytes, 1, CAPACITY_BYTES);
			assert_true(c.blocks >= c.processes);
			assert_int_equal(c.groups % 2, 0);
			assert_true(c.groups * WIRE_GROUP_CPUS >= cpus);
		}
}

/* What nobody asks for takes 64 MiB at most, and a block, once all of it is in use: see capacity.c.
 */
static void test_usual_number(void **state)
{
	static const uint32_t usual[] = {RUN, AUDIT};

	(void)state;
	assert_int_equal(capacity_within_bound(AUDIT, 2).processes, AUDIT);
	assert_int_equal(capacity_within_bound(AUDIT, 128).processes,
			 (64 - 23 - 2 - 16) * 1024 * 1024 / 1072);
	assert_int_equal(capacity_within_bound(RUN, 128).processes, RUN);
	for (uint32_t cpus = 1; cpus <= WIRE_MAX_CPUS; cpus++)
		for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++) {
			const struct capacity c = capacity_within_bound(usual[i], cpus);

			assert_in_range(c.processes, 8192, usual[i]);
			assert_in_range(c.processes * 1072 + c.bytes + cpus * 16384 + (23 << 20), 1,
					(64 << 20) + 268);
		}
}

static void test_said(void **state)
{
	const struct capacity c = capacity_for(RUN, 512);
	char text[CAPACITY_TEXT_MAX];

	(void)state;
	capacity_say(&c, text);
	assert_string_equal(text, "16384 processes at a time, on 512 CPUs; 16.0 MiB for 54776 "
				  "groups of up to 16 CPUs that they run on");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_cpus),     cmocka_unit_test(test_one_group),
		cmocka_unit_test(test_many_cpus),    cmocka_unit_test(test_bound),
		cmocka_unit_test(test_usual_number), cmocka_unit_test(test_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
