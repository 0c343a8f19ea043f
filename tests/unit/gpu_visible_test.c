/* SPDX-License-Identifier: GPL-2.0-only */
/* Which GPUs a program sees, and how it numbers them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/gpu_visible.h"

enum { N = 4 };

static const char *const uuids[N] = {"GPU-8932f937-0000", "GPU-89aaaaaa-1111", "GPU-0fb1a4ae-2222",
				     "GPU-0fb1a4ae-3333"};

/* "2:0 0:1" is: the device 2 is the program's 0, and 0 its 1; "*" is one without a number. */
static void sees(enum gpu_vendor vendor, const struct gpu_environment *env, const char *expected)
{
	struct gpu_device devices[N];
	char text[128] = "";
	int len = 0;

	memset(devices, 0, sizeof(devices));
	for (uint32_t i = 0; i < N; i++) {
		devices[i].vendor = vendor;
		devices[i].index = i;
		snprintf(devices[i].uuid, sizeof(devices[i].uuid), "%s", uuids[i]);
	}
	gpus_mark_visible(devices, N, env);
	for (uint32_t number = 0; number < N; number++) {
		for (uint32_t i = 0; i < N; i++) {
			if (devices[i].is_visible && devices[i].has_number &&
			    devices[i].number == number)
				len += sprintf(text + len, "%s%u:%u", len ? " " : "", i, number);
		}
	}
	for (uint32_t i = 0; i < N; i++) {
		if (devices[i].is_visible && !devices[i].has_number)
			len += sprintf(text + len, "%s%u:*", len ? " " : "", i);
	}
	assert_string_equal(text, expected);
}

static void cuda_sees(const char *list, const char *expected)
{
	sees(GPU_NVIDIA, &(struct gpu_environment){.cuda_visible = list}, expected);
}

static const char unknown[] = "0:* 1:* 2:* 3:*";

static void test_cuda(void **state)
{
	(void)state;
	cuda_sees(NULL, "0:0 1:1 2:2 3:3");
	cuda_sees("2", "2:0");
	cuda_sees("3,1", "3:0 1:1");
	cuda_sees(" 3 , 1 ", "3:0 1:1");
	cuda_sees("", "");
	cuda_sees("-1", "");
	cuda_sees("NoDevFiles", "");
	/* What comes after an entry that names none is not visible. */
	cuda_sees("1,7,2", "1:0");
	cuda_sees("1,,2", "1:0");
	cuda_sees("0,x", "0:0");
	cuda_sees("99999999999999999999", "");
}

static void test_uuids(void **state)
{
	(void)state;
	cuda_sees("GPU-89aaaaaa-1111", "1:0");
	cuda_sees("GPU-8932,GPU-89aa", "0:0 1:1");
	cuda_sees("gpu-8932F937,2", "0:0 2:1");
	cuda_sees("GPU-ffff", "");
	/* A beginning that fits two, and the same device twice. */
	cuda_sees("GPU-0fb1a4ae", unknown);
	cuda_sees("1,GPU-89aa", unknown);
	cuda_sees("0,0", unknown);
	cuda_sees("MIG-GPU-8932f937-0000/1/0", unknown);
	cuda_sees("MIG-3eb87630-93d5-b2b6-b8ff-9b359caf4ee2", unknown);
}

static void test_hip(void **state)
{
	(void)state;
	sees(GPU_AMD, &(struct gpu_environment){.cuda_visible = "1"}, "1:0");
	sees(GPU_AMD, &(struct gpu_environment){.hip_visible = "2,0", .cuda_visible = "1"},
	     "2:0 0:1");
	sees(GPU_AMD, &(struct gpu_environment){.hip_visible = "", .cuda_visible = "1"}, "1:0");
	/* HIP chooses among what ROCr leaves. */
	sees(GPU_AMD, &(struct gpu_environment){.rocr_visible = "3,2,1", .hip_visible = "2,0"},
	     "1:0 3:1");
	sees(GPU_AMD, &(struct gpu_environment){.rocr_visible = "GPU-8932f937-0000"}, "0:0");
	sees(GPU_AMD, &(struct gpu_environment){.rocr_visible = "3", .hip_visible = "1"}, "");
	sees(GPU_NVIDIA, &(struct gpu_environment){.rocr_visible = "3", .hip_visible = "1"},
	     "0:0 1:1 2:2 3:3");
}

/* CUDA numbers the fastest first, NVML by the bus. */
static void test_different_devices(void **state)
{
	struct gpu_environment env = {.cuda_visible = "1"};
	struct gpu_device devices[2] = {
		{.vendor = GPU_NVIDIA, .name = "NVIDIA T4"},
		{.vendor = GPU_NVIDIA, .index = 1, .name = "NVIDIA H100"},
	};

	(void)state;
	gpus_mark_visible(devices, 2, &env);
	assert_true(devices[0].is_visible && !devices[0].has_number);
	assert_true(devices[1].is_visible && !devices[1].has_number);
	env.cuda_order = "PCI_BUS_ID";
	gpus_mark_visible(devices, 2, &env);
	assert_false(devices[0].is_visible);
	assert_true(devices[1].is_visible && devices[1].has_number);
	assert_int_equal(devices[1].number, 0);
}

/* Each vendor's are numbered from 0. */
static void test_two_vendors(void **state)
{
	const struct gpu_environment env = {.cuda_visible = "0"};
	struct gpu_device devices[3] = {{.vendor = GPU_NVIDIA, .name = "A"},
					{.vendor = GPU_AMD, .name = "B"},
					{.vendor = GPU_AMD, .name = "B", .index = 1}};

	(void)state;
	gpus_mark_visible(devices, 3, &env);
	assert_true(devices[0].is_visible && devices[0].number == 0);
	assert_true(devices[1].is_visible && devices[1].number == 0);
	assert_false(devices[2].is_visible);
}

static void test_environment(void **state)
{
	static const char text[] = "PATH=/bin\0CUDA_VISIBLE_DEVICES=2,3\0XHIP_VISIBLE_DEVICES=1\0"
				   "ROCR_VISIBLE_DEVICES=\0CUDA_VISIBLE_DEVICES=9";
	struct gpu_environment env = gpu_environment_of(text, sizeof(text));

	(void)state;
	assert_string_equal(env.cuda_visible, "2,3");
	assert_string_equal(env.rocr_visible, "");
	assert_null(env.hip_visible);
	assert_null(env.cuda_order);
	/* What was cut off is not taken for a value. */
	env = gpu_environment_of("CUDA_VISIBLE_DEVICES=2,3", 22);
	assert_null(env.cuda_visible);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuda),	    cmocka_unit_test(test_uuids),
		cmocka_unit_test(test_hip),	    cmocka_unit_test(test_different_devices),
		cmocka_unit_test(test_two_vendors), cmocka_unit_test(test_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
