/* SPDX-License-Identifier: GPL-2.0-only */
/* AMD's GPUs, as the kernel tells of them in files: here in a folder of ours. */
#include <errno.h>
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

#include "kernel/amdgpu.h"

static char root[64], sys[80], proc[80];

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		assert_true(!mkdir(path, 0700) || errno == EEXIST);
		*slash = '/';
	}
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/amdgpu_test.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(sys, sizeof(sys), "%s/sys", root);
	snprintf(proc, sizeof(proc), "%s/proc", root);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void put_card(const char *card, const char *slot, const char *total, const char *used)
{
	char name[128], text[128];

	snprintf(name, sizeof(name), "sys/class/drm/%s/device/mem_info_vram_total", card);
	put(name, total);
	snprintf(name, sizeof(name), "sys/class/drm/%s/device/mem_info_vram_used", card);
	put(name, used);
	snprintf(name, sizeof(name), "sys/class/drm/%s/device/uevent", card);
	snprintf(text, sizeof(text), "DRIVER=amdgpu\nPCI_SLOT_NAME=%s\nMODALIAS=x\n", slot);
	put(name, text);
}

/* Two cards that compute, in another order than drm has them; one that only draws. */
static void put_machine(void)
{
	put("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
	put("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n");
	put("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "51874\n");
	put("sys/class/kfd/kfd/topology/nodes/1/properties",
	    "simd_count 440\nlocation_id 49920\ndomain 0\nunique_id 11743426424873426291\n");
	put("sys/class/kfd/kfd/topology/nodes/2/gpu_id", "7321\n");
	put("sys/class/kfd/kfd/topology/nodes/2/properties",
	    "simd_count 440\nlocation_id 768\ndomain 1\nunique_id 0\n");
	put_card("card0", "0001:03:00.0", "68702699520\n", "1048576\n");
	put("sys/class/drm/card0/device/product_name", "AMD Instinct MI210\n");
	put_card("card1", "0000:c3:00.0", "68702699520\n", "2097152\n");
	put("sys/class/drm/card1/device/device", "0x740f\n");
	put_card("card10", "0000:05:00.0", "4294967296\n", "4096\n");
	put("sys/class/drm/card1-DP-1/status", "connected\n");
	put("sys/class/drm/renderD128/dev", "226:128\n");
	/* Another driver's says nothing of its memory. */
	put("sys/class/drm/card2/device/uevent", "DRIVER=ast\nPCI_SLOT_NAME=0000:02:00.0\n");
}

static void test_devices(void **state)
{
	const struct amdgpu_roots roots = {sys, proc};
	static struct gpu_look look;
	char why[GPU_WHY_MAX];

	(void)state;
	put_machine();
	look.n_devices = 0;
	amdgpu_look(&roots, NULL, 0, &look, why);
	assert_string_equal(why, "");
	assert_int_equal(look.n_devices, 3);
	assert_string_equal(look.devices[0].pci, "0000:c3:00.0");
	assert_string_equal(look.devices[0].uuid, "GPU-a2f9081d34841d73");
	assert_string_equal(look.devices[0].name, "AMD 0x740f");
	assert_int_equal(look.devices[0].used, 2097152);
	assert_string_equal(look.devices[1].pci, "0001:03:00.0");
	assert_string_equal(look.devices[1].name, "AMD Instinct MI210");
	assert_string_equal(look.devices[1].uuid, "");
	assert_int_equal(look.devices[1].total, 68702699520);
	assert_int_equal(look.devices[2].index, 2);
	assert_string_equal(look.devices[2].pci, "0000:05:00.0");
	assert_int_equal(look.n_uses, 0);
}

static void put_file(const char *fd, const char *link, const char *info)
{
	char name[128], linked[512];

	snprintf(name, sizeof(name), "proc/42/fd/%s", fd);
	snprintf(linked, sizeof(linked), "%s", path_of(name));
	assert_int_equal(symlink(link, linked), 0);
	snprintf(name, sizeof(name), "proc/42/fdinfo/%s", fd);
	put(name, info);
}

static void test_processes(void **state)
{
	const struct amdgpu_roots roots = {sys, proc};
	const uint32_t pids[] = {42, 43};
	static struct gpu_look look;
	char why[GPU_WHY_MAX];

	(void)state;
	put("sys/class/kfd/kfd/proc/42/vram_51874", "1073741824\n");
	put("sys/class/kfd/kfd/proc/42/vram_7321", "4096\n");
	put("sys/class/kfd/kfd/proc/42/pasid", "32770\n");
	/* One client, open twice, and another; kfd tells more of the same memory on that card. */
	put_file("5", "/dev/dri/renderD128",
		 "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0001:03:00.0\n"
		 "drm-memory-vram:\t12 KiB\ndrm-total-vram:\t99 KiB\n");
	put_file("6", "/dev/dri/renderD128",
		 "drm-client-id:\t7\ndrm-pdev:\t0001:03:00.0\ndrm-memory-vram:\t12 KiB\n");
	put_file("7", "/dev/dri/renderD129",
		 "drm-client-id:\t9\ndrm-pdev:\t0000:c3:00.0\ndrm-resident-vram:\t1 MiB\n");
	put_file("8", "/dev/null",
		 "drm-client-id:\t8\ndrm-pdev:\t0000:c3:00.0\ndrm-memory-vram:\t5 KiB\n");
	look.n_devices = 0;
	amdgpu_look(&roots, pids, 2, &look, why);
	assert_int_equal(look.n_uses, 2);
	assert_int_equal(look.uses[0].pid, 42);
	assert_int_equal(look.uses[0].device, 0);
	assert_int_equal(look.uses[0].bytes, 1073741824);
	assert_int_equal(look.uses[1].device, 1);
	assert_int_equal(look.uses[1].bytes, 12288);
}

static void test_none(void **state)
{
	const struct amdgpu_roots roots = {"/nonexistent", "/nonexistent"};
	static struct gpu_look look;
	char why[GPU_WHY_MAX];

	(void)state;
	amdgpu_look(&roots, NULL, 0, &look, why);
	assert_int_equal(look.n_devices, 0);
	assert_string_equal(why, "the driver amdgpu shows no card in /nonexistent/class/drm or "
				 "/nonexistent/class/kfd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
