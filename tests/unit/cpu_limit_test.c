/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a process's CPU quota is, and what the kernel says of its throttling, in v1 and in v2. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "kernel/cpu_limit.h"

static void what_cpu_stat_says(void **state)
{
	char v1[] = "nr_periods 30\nnr_throttled 20\nthrottled_time 1500000123\nwait_sum 9\n";
	char v2[] = "usage_usec 5\nuser_usec 5\nsystem_usec 0\nnr_periods 30\nnr_throttled 20\n"
		    "throttled_usec 1500000\nnr_bursts 0\nburst_usec 7\n";
	char without[] = "usage_usec 5\nuser_usec 5\nsystem_usec 0\n";
	uint64_t ns = 0, periods = 0;

	(void)state;
	assert_true(cpu_limit_stat(v1, &ns, &periods));
	assert_int_equal(ns, 1500000123);
	assert_int_equal(periods, 20);
	assert_true(cpu_limit_stat(v2, &ns, &periods));
	assert_int_equal(ns, 1500000000);
	assert_false(cpu_limit_stat(without, &ns, &periods));
}

static void where_the_controller_is(void **state)
{
	static const char mounts[] =
		"31 25 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
		"32 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		"33 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
	char cgroups[] = "5:cpuset:/set\n4:cpu,cpuacct:/job/a\n0::/other\n";
	FILE *a = fmemopen(cgroups, strlen(cgroups), "r");
	FILE *b = fmemopen((void *)mounts, strlen(mounts), "r");
	struct hierarchy h;

	(void)state;
	assert_true(hierarchy_find(a, b, "cpu", &h));
	assert_string_equal(h.mount, "/sys/fs/cgroup/cpu");
	assert_string_equal(h.path, "/job/a");
	fclose(a);
	fclose(b);
}

static void our_own_cpus(void **state)
{
	struct cpu_limit *limit = calloc(1, sizeof(*limit));
	cpu_set_t set;

	(void)state;
	assert_non_null(limit);
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	limit->pid = (uint32_t)getpid();
	cpu_limit_look(limit);
	assert_int_equal(limit->cpus, CPU_COUNT(&set));
	free(limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cpu_stat_says),
		cmocka_unit_test(where_the_controller_is),
		cmocka_unit_test(our_own_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
