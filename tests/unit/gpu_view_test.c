/* SPDX-License-Identifier: GPL-2.0-only */
/* What looks at GPUs come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/gpu_view.h"

static bool is_even(void *context, uint32_t pid)
{
	(void)context;
	return pid % 2 == 0;
}

/* Two devices of which the second is visible, and one more. */
static struct gpu_look look_at(uint64_t time_ns, uint64_t used, uint64_t other)
{
	struct gpu_look look = {.time_ns = time_ns, .n_devices = 3};

	for (uint32_t i = 0; i < 3; i++)
		look.devices[i] = (struct gpu_device){
			.index = i, .pci = {(char)('a' + i)}, .knows_used = true};
	memcpy(look.devices[1].name, "A\xff", 3);
	look.devices[0].used = 1000000;
	look.devices[1].used = used;
	look.devices[1].is_visible = look.devices[1].has_number = true;
	look.devices[2].used = other;
	look.devices[2].is_visible = look.devices[2].has_number = true;
	look.devices[2].number = 1;
	return look;
}

static void take(struct gpu_view *v, const struct gpu_look *look, uint64_t asked_ns)
{
	gpu_view_take(v, look, asked_ns, is_even, NULL);
}

static void test_looks(void **state)
{
	static struct gpu_view v;
	struct gpu_look look = look_at(11, 10, 1);

	(void)state;
	take(&v, &look, 5);
	look = look_at(21, 30, 2);
	look.n_uses = 3;
	look.uses[0] = (struct gpu_use){.device = 1, .pid = 2, .bytes = 7};
	look.uses[1] = (struct gpu_use){.device = 1, .pid = 3, .bytes = 100};
	look.uses[2] = (struct gpu_use){.device = 1, .pid = 4, .bytes = 8};
	take(&v, &look, 15);
	look = look_at(31, 20, 3);
	take(&v, &look, 25);
	assert_int_equal(v.gpus.n, 2);
	assert_string_equal(v.gpus.list[0].name, "A\xef\xbf\xbd");
	assert_int_equal(v.gpus.list[0].index, 1);
	assert_int_equal(v.gpus.list[0].number, 0);
	assert_int_equal(v.gpus.list[0].looks, 3);
	assert_int_equal(v.gpus.list[0].first_used, 10);
	assert_int_equal(v.gpus.list[0].peak_used, 30);
	assert_int_equal(v.gpus.list[0].peak_ns, 21);
	assert_int_equal(v.gpus.list[0].last_used, 20);
	assert_int_equal(v.gpus.list[0].tree_peak_used, 15);
	assert_int_equal(v.gpus.list[1].tree_peak_used, 0);
	assert_true(v.gpus.knows_used);
	assert_int_equal(v.gpus.used, 23);
	assert_int_equal(v.gpus.asked_ns, 25);
	assert_int_equal(v.gpus.told_ns, 31);
}

static bool never(void *context, uint32_t pid)
{
	(void)context;
	(void)pid;
	return false;
}

static bool is_four(void *context, uint32_t pid)
{
	(void)context;
	assert_int_equal(pid % 2, 0); /* others are none of the run's */
	return pid == 4;
}

static bool is_below_100(void *context, uint32_t pid)
{
	(void)context;
	return pid < 100;
}

static const struct gpu_owners at_rest = {is_below_100, is_even, never, NULL};
static const struct gpu_owners one_ends = {is_below_100, is_even, is_four, NULL};

/* What the run did not allocate itself, the most of all looks; less than it did is no answer. */
static void test_share_of_the_driver(void **state)
{
	static struct gpu_view v;
	struct gpu_look look = look_at(11, 10, 1);

	(void)state;
	look.n_uses = 3;
	look.uses[0] = (struct gpu_use){.device = 0, .pid = 2, .bytes = 70};
	look.uses[1] = (struct gpu_use){.device = 1, .pid = 3, .bytes = 1000};
	look.uses[2] = (struct gpu_use){.device = 2, .pid = 4, .bytes = 80};
	gpu_view_compare(&v, &look, 151, &at_rest);
	assert_int_equal(v.gpus.driver_share, 0);
	gpu_view_compare(&v, &look, 100, &at_rest);
	assert_int_equal(v.gpus.driver_share, 50);
	look.uses[2].bytes = 800; /* the driver has not freed it yet, and its end was not read */
	gpu_view_compare(&v, &look, 60, &one_ends);
	assert_int_equal(v.gpus.driver_share, 50);
	look.uses_were_cut = true;
	gpu_view_compare(&v, &look, 90, &at_rest);
	assert_int_equal(v.gpus.driver_share, 50);
	look.uses_were_cut = false;
	look.uses[2].bytes = 80;
	gpu_view_compare(&v, &look, 110, &at_rest);
	assert_int_equal(v.gpus.driver_share, 50);
	gpu_view_compare(&v, &look, 90, &at_rest);
	assert_int_equal(v.gpus.driver_share, 60);
	look.uses[1].pid = 101; /* nobody here has that number */
	gpu_view_compare(&v, &look, 80, &at_rest);
	assert_int_equal(v.gpus.driver_share, 60);
	look.uses[1].pid = 3;
	look.n_uses = 0;
	gpu_view_compare(&v, &look, 100, &at_rest);
	assert_int_equal(v.gpus.driver_share, 60);
}

/* One that fell off its bus: what was is kept, and a sum without it is none. */
static void test_a_device_that_goes(void **state)
{
	static struct gpu_view v;
	struct gpu_look look = look_at(11, 10, 1);

	(void)state;
	take(&v, &look, 5);
	look = look_at(21, 30, 2);
	look.devices[1] = look.devices[2];
	look.n_devices = 2;
	take(&v, &look, 15);
	assert_int_equal(v.gpus.n, 2);
	assert_int_equal(v.gpus.list[0].looks, 1);
	assert_int_equal(v.gpus.list[1].looks, 2);
	assert_int_equal(v.gpus.list[1].last_used, 2);
	assert_false(v.gpus.knows_used);
}

static void test_no_device(void **state)
{
	static struct gpu_view v;
	struct gpu_look look = {.time_ns = 1};

	(void)state;
	take(&v, &look, 0);
	assert_int_equal(v.gpus.n, 0);
	assert_false(v.gpus.knows_used);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_share_of_the_driver),
		cmocka_unit_test(test_a_device_that_goes),
		cmocka_unit_test(test_no_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
