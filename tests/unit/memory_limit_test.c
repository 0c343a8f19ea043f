/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a process's memory cgroup is, by what /proc says, in each way that machines are set up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernel/hierarchy.h"
#include "kernel/memory_limit.h"

#define V1_MEMORY "33 25 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define V1_CPU	  "32 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
#define V2	  "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define PROC	  "22 1 0:20 / /proc rw - proc proc rw\n"

static bool find(const char *cgroups, const char *mounts, struct hierarchy *h)
{
	FILE *a = fmemopen((void *)cgroups, strlen(cgroups), "r");
	FILE *b = fmemopen((void *)mounts, strlen(mounts), "r");
	bool found;

	assert_non_null(a);
	assert_non_null(b);
	memset(h, 0, sizeof(*h));
	found = hierarchy_find(a, b, "memory", h);
	fclose(a);
	fclose(b);
	return found;
}

static void check(const char *cgroups, const char *mounts, const char *mount, const char *path,
		  bool v1)
{
	struct hierarchy h;

	assert_true(find(cgroups, mounts, &h));
	assert_string_equal(h.mount, mount);
	assert_string_equal(h.path, path);
	assert_int_equal(h.v1, v1);
}

static void each_hierarchy(void **state)
{
	(void)state;
	check("0::/user.slice/job\n", PROC V2, "/sys/fs/cgroup", "/user.slice/job", false);
	check("9:cpu,cpuacct:/\n4:memory:/job/a\n0::/\n", PROC V1_CPU V1_MEMORY V2,
	      "/sys/fs/cgroup/memory", "/job/a", true);
	/* v1 has the controller, wherever its line is. */
	check("0::/other\n4:memory:/job\n", V2 V1_MEMORY, "/sys/fs/cgroup/memory", "/job", true);
	check("0::/\n", V2, "/sys/fs/cgroup", "/", false);
}

/* Docker without a cgroup namespace: the mount shows the container's cgroup only. */
static void a_part_of_the_hierarchy(void **state)
{
	static const char mounts[] =
		"40 39 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
	struct hierarchy h;

	(void)state;
	check("4:memory:/docker/abc\n", mounts, "/sys/fs/cgroup/memory", "", true);
	check("4:memory:/docker/abc/job\n", mounts, "/sys/fs/cgroup/memory", "/job", true);
	assert_false(find("4:memory:/docker/abcd\n", mounts, &h));
	assert_false(find("4:memory:/other\n", mounts, &h));
}

static void what_cannot_be_seen(void **state)
{
	struct hierarchy h;

	(void)state;
	assert_false(find("0::/../other\n", V2, &h));
	assert_false(find("0::/..\n", V2, &h));
	assert_false(find("4:memory:/job\n", V2, &h));
	assert_false(find("0::/job\n", PROC, &h));
	assert_false(find("\n", V2, &h));
}

static void bad_lines(void **state)
{
	struct hierarchy h;

	(void)state;
	assert_false(find("0\n:\n::\nmemory\n", V2, &h));
	assert_false(find("0::/job\n", "1 2\n\n30 24 0:26 / /x rw\n30 24 0:26 / /x rw - \n", &h));
	assert_false(find("0::/job\n", "30 24 0:26 / /x rw - cgroup2\n", &h));
	check("0::/job\n", "30 24 0:26 / /x rw - cgroup2\n" V2, "/sys/fs/cgroup", "/job", false);
}

static uint64_t cache_of(const char *text)
{
	char stat[512];

	snprintf(stat, sizeof(stat), "%s", text);
	return memory_stat_cache(stat);
}

/* Pages that reclaim holds are on no list; what is locked, in tmpfs or in swap is no cache. */
static void cache_of_a_cgroup(void **state)
{
	(void)state;
	assert_int_equal(cache_of("anon 7\nfile 900\ninactive_file 500\nactive_file 400\n"), 900);
	assert_int_equal(cache_of("file 900\nshmem 100\ninactive_file 50\nactive_file 30\n"), 800);
	assert_int_equal(cache_of("file 900\nshmem 100\nswapcached 20\nunevictable 700\n"
				  "inactive_file 60\nactive_file 60\n"),
			 120);
	assert_int_equal(cache_of("file 10\nshmem 20\n"), 0);
	assert_int_equal(cache_of("cache 10\ninactive_file 3\nactive_file 4\n"
				  "total_cache 90\ntotal_shmem 20\ntotal_inactive_file 30\n"
				  "total_active_file 20\n"),
			 70);
	assert_int_equal(cache_of("\nfile\nfile x\nactive_file 5"), 5);
	assert_int_equal(cache_of(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_hierarchy),      cmocka_unit_test(a_part_of_the_hierarchy),
		cmocka_unit_test(what_cannot_be_seen), cmocka_unit_test(bad_lines),
		cmocka_unit_test(cache_of_a_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
