/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/memory_limit.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/procfs.h"

/* PAGE_COUNTER_MAX in bytes is what v1 writes for no limit: somewhat less than 2^63. */
static const uint64_t NO_LIMIT = 1ull << 62;

/* ---- Where -------------------------------------------------------------------------------------
 */

/* Returns whether a list with commas has that word. */
static bool has_word(const char *list, const char *word)
{
	const size_t len = strlen(word);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (!strncmp(list, word, len) && (!list[len] || list[len] == ','))
			return true;
	return false;
}

/* A path that leaves what we see of the hierarchy ("/../x", of another cgroup namespace). */
static bool is_outside(const char *path)
{
	return !strncmp(path, "/..", 3) && (!path[3] || path[3] == '/');
}

/* "4:memory:/job" of v1 comes before "0::/job" of v2: there the controller would be of no use. */
static bool find_path(FILE *cgroups, struct memory_hierarchy *h)
{
	char line[PATH_MAX + 64];
	bool v1 = false, any = false;

	while (!v1 && fgets(line, sizeof(line), cgroups)) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		v1 = has_word(list + 1, "memory");
		if (!v1 && list[1])
			continue;
		if (strlen(path) >= sizeof(h->path))
			return false;
		memcpy(h->path, path, strlen(path) + 1);
		h->v1 = v1;
		h->file = v1 ? "memory.limit_in_bytes" : "memory.max";
		any = true;
	}
	return any && h->path[0] == '/' && !is_outside(h->path);
}

/*
 * A line of mountinfo is "36 35 0:29 ROOT MOUNT OPTIONS [TAGS...] - TYPE SOURCE SUPER". ROOT is the
 * directory of the hierarchy that is mounted: the path has to be below it.
 */
static bool read_mount(char *line, bool v1, struct memory_hierarchy *h)
{
	char *words[6], *rest = line, *type, *super;
	size_t len;

	for (size_t i = 0; i < 6; i++) {
		words[i] = strsep(&rest, " ");
		if (!words[i] || !rest)
			return false;
	}
	while (rest && strncmp(rest, "- ", 2) != 0) /* tags */
		strsep(&rest, " ");
	if (!rest)
		return false;
	rest += 2;
	type = strsep(&rest, " ");
	super = rest ? strchr(rest, ' ') : NULL;
	if (strcmp(type, v1 ? "cgroup" : "cgroup2") || !super)
		return false;
	super[1 + strcspn(super + 1, "\n")] = '\0';
	if (v1 && !has_word(super + 1, "memory"))
		return false;
	len = strlen(words[3]);
	len -= len == 1; /* "/" */
	if (strncmp(h->path, words[3], len) || (h->path[len] && h->path[len] != '/') ||
	    strlen(words[4]) >= sizeof(h->mount))
		return false;
	memmove(h->path, h->path + len, strlen(h->path + len) + 1);
	memcpy(h->mount, words[4], strlen(words[4]) + 1);
	return true;
}

bool memory_hierarchy_find(FILE *cgroups, FILE *mounts, struct memory_hierarchy *h)
{
	char line[2 * PATH_MAX];

	if (!find_path(cgroups, h))
		return false;
	while (fgets(line, sizeof(line), mounts))
		if (read_mount(line, h->v1, h))
			return true;
	return false;
}

/* ---- How much ----------------------------------------------------------------------------------
 */

/* Returns NO_LIMIT if there is none, or none that can be read: the root has no such file. */
static uint64_t read_limit(const struct memory_hierarchy *h, const char *path)
{
	char name[3 * PATH_MAX];
	uint64_t bytes = NO_LIMIT;
	FILE *file;

	snprintf(name, sizeof(name), "%s%s/%s", h->mount, path, h->file);
	file = fopen(name, "re");
	if (!file)
		return NO_LIMIT;
	if (fscanf(file, "%" SCNu64, &bytes) != 1) /* "max" */
		bytes = NO_LIMIT;
	fclose(file);
	return bytes;
}

/*
 * Each cgroup is within the limits of those above it. In a container the mount itself is a cgroup
 * with a limit, perhaps: its path is "".
 */
static void look_upwards(const struct memory_hierarchy *h, struct memory_limit *limit)
{
	char path[PATH_MAX], *slash;

	memcpy(path, h->path, sizeof(path));
	do {
		const uint64_t bytes = read_limit(h, path);

		if (bytes < NO_LIMIT && (!limit->bytes || bytes < limit->bytes)) {
			limit->bytes = bytes;
			snprintf(limit->of, sizeof(limit->of), "cgroup %.4000s",
				 path[0] ? path : "/");
		}
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
}

bool memory_hierarchy_of(uint32_t pid, struct memory_hierarchy *h)
{
	char name[64];
	FILE *cgroups, *mounts;
	bool found;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", pid);
	cgroups = fopen(name, "re");
	mounts = fopen("/proc/self/mountinfo", "re");
	found = cgroups && mounts && memory_hierarchy_find(cgroups, mounts, h);
	if (cgroups)
		fclose(cgroups);
	if (mounts)
		fclose(mounts);
	return found;
}

void memory_limit_of(uint32_t pid, struct memory_limit *limit)
{
	struct procfs_memory machine = {0};
	struct memory_hierarchy h;

	limit->bytes = 0;
	limit->of[0] = '\0';
	if (memory_hierarchy_of(pid, &h))
		look_upwards(&h, limit);
	if (procfs_memory(&machine) || (limit->bytes && limit->bytes <= machine.total))
		return;
	limit->bytes = machine.total;
	snprintf(limit->of, sizeof(limit->of), "machine");
}
