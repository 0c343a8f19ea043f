/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/cpu_limit.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"

enum { NS_PER_US = 1000, STAT_MAX = 4096, MOST_CPUS = 8192 };

/* ---- CPUs --------------------------------------------------------------------------------------
 */

/* Returns on how many CPUs a process may run, by its mask and its cpuset; 0: not known. */
static uint64_t cpus_of(uint32_t pid)
{
	const size_t size = CPU_ALLOC_SIZE(MOST_CPUS);
	cpu_set_t *set = CPU_ALLOC(MOST_CPUS);
	uint64_t n = 0;

	if (set && !sched_getaffinity((pid_t)pid, size, set))
		n = (uint64_t)CPU_COUNT_S(size, set);
	CPU_FREE(set);
	return n;
}

/* ---- The quota ---------------------------------------------------------------------------------
 */

/* Returns false if there is no such file: the root has none. */
static bool read_file(const char *directory, const char *file, char *text, size_t size)
{
	char name[3 * PATH_MAX];
	size_t len = 0;
	FILE *in;

	snprintf(name, sizeof(name), "%s/%s", directory, file);
	in = fopen(name, "re");
	if (in) {
		len = fread(text, 1, size - 1, in);
		fclose(in);
	}
	text[len] = '\0';
	return len;
}

/* Returns false if there is none: "-1" in v1, "max 100000" in v2. */
static bool read_quota(const char *directory, bool v1, uint64_t *quota_us, uint64_t *period_us)
{
	char quota[64], period[64];

	if (!v1)
		return read_file(directory, "cpu.max", quota, sizeof(quota)) &&
		       sscanf(quota, "%" SCNu64 " %" SCNu64, quota_us, period_us) == 2 &&
		       *period_us;
	return read_file(directory, "cpu.cfs_quota_us", quota, sizeof(quota)) && quota[0] != '-' &&
	       read_file(directory, "cpu.cfs_period_us", period, sizeof(period)) &&
	       sscanf(quota, "%" SCNu64, quota_us) == 1 &&
	       sscanf(period, "%" SCNu64, period_us) == 1 && *period_us;
}

static bool is_lower(uint64_t quota_ns, uint64_t period_ns, const struct cpu_limit *than)
{
	return !than->quota_ns || (double)quota_ns / (double)period_ns <
					  (double)than->quota_ns / (double)than->period_ns;
}

static void note_lowest(void *context, const struct hierarchy *h, const char *path)
{
	struct cpu_limit *limit = context;
	char directory[sizeof(limit->directory)];
	uint64_t quota, period;

	snprintf(directory, sizeof(directory), "%s%s", h->mount, path);
	if (!read_quota(directory, h->v1, &quota, &period) ||
	    !is_lower(quota * NS_PER_US, period * NS_PER_US, limit))
		return;
	limit->quota_ns = quota * NS_PER_US;
	limit->period_ns = period * NS_PER_US;
	snprintf(limit->directory, sizeof(limit->directory), "%s", directory);
	snprintf(limit->of, sizeof(limit->of), "cgroup %s", path[0] ? path : "/");
}

/* ---- Throttling --------------------------------------------------------------------------------
 */

bool cpu_limit_stat(char *text, uint64_t *throttled_ns, uint64_t *throttled_periods)
{
	unsigned int found = 0;
	uint64_t number;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (sscanf(line, "nr_throttled %" SCNu64, &number) == 1) {
			*throttled_periods = number;
			found |= 1;
		} else if (sscanf(line, "throttled_time %" SCNu64, &number) == 1) {
			*throttled_ns = number;
			found |= 2;
		} else if (sscanf(line, "throttled_usec %" SCNu64, &number) == 1) {
			*throttled_ns = number * NS_PER_US;
			found |= 2;
		}
	}
	return found == 3;
}

/* What a cgroup had before the process was in it, or before it had the lowest quota, is not ours.
 */
static void read_throttled(struct cpu_limit *limit, bool is_new)
{
	uint64_t ns, periods;
	char stat[STAT_MAX];

	if (!read_file(limit->directory, "cpu.stat", stat, sizeof(stat)) ||
	    !cpu_limit_stat(stat, &ns, &periods))
		return;
	if (!is_new) {
		limit->throttled_ns += since(limit->seen_ns, ns);
		limit->throttled_periods += since(limit->seen_periods, periods);
	}
	limit->seen_ns = ns;
	limit->seen_periods = periods;
}

void cpu_limit_look(struct cpu_limit *limit)
{
	const uint64_t cpus = cpus_of(limit->pid);
	char before[sizeof(limit->directory)];

	if (cpus)
		limit->cpus = cpus;
	if (hierarchy_moved(limit->pid, limit->cgroups, sizeof(limit->cgroups)) &&
	    !hierarchy_of(limit->pid, "cpu", &limit->hierarchy))
		limit->hierarchy = (struct hierarchy){0};
	if (!limit->hierarchy.mount[0])
		return;
	memcpy(before, limit->directory, sizeof(before));
	limit->quota_ns = limit->period_ns = 0;
	limit->directory[0] = '\0';
	hierarchy_upwards(&limit->hierarchy, note_lowest, limit);
	if (limit->quota_ns)
		read_throttled(limit, strcmp(before, limit->directory) != 0);
}
