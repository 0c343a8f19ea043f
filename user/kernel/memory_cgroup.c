/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/memory_cgroup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/amounts.h"
#include "kernel/hierarchy.h"

enum { NAME_MAX_BYTES = 3 * PATH_MAX };

static const char *file_of(const struct memory_cgroup *cgroup, const char *file, char *name)
{
	snprintf(name, NAME_MAX_BYTES, "%s/%s", cgroup->directory, file);
	return name;
}

static bool has_file(const struct memory_cgroup *cgroup, const char *file)
{
	char name[NAME_MAX_BYTES];

	return !access(file_of(cgroup, file, name), F_OK);
}

/* Of the path alone nobody can tell: in a container, its own cgroup is "/". */
static bool is_root(const struct memory_cgroup *cgroup)
{
	return cgroup->v1 ? has_file(cgroup, "release_agent") : !has_file(cgroup, "memory.current");
}

bool memory_cgroup_of(uint32_t pid, struct memory_cgroup *cgroup)
{
	struct hierarchy h;

	if (!hierarchy_of(pid, "memory", &h))
		return false;
	cgroup->v1 = h.v1;
	snprintf(cgroup->directory, sizeof(cgroup->directory), "%s%s", h.mount, h.path);
	snprintf(cgroup->path, sizeof(cgroup->path), "%s", h.path[0] ? h.path : "/");
	return !is_root(cgroup);
}

/* Returns false without such a file, or if it has none of the lines "KEY BYTES". */
static bool read_stat(const struct memory_cgroup *cgroup, const char *const keys[4],
		      uint64_t *const values[4])
{
	char name[NAME_MAX_BYTES], line[256], key[64];
	uint64_t bytes;
	unsigned int found = 0;
	FILE *file = fopen(file_of(cgroup, "memory.stat", name), "re");

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %" SCNu64, key, &bytes) != 2)
			continue;
		for (unsigned int i = 0; i < 4; i++) {
			if (!keys[i] || strcmp(key, keys[i]) != 0)
				continue;
			*values[i] = bytes;
			found++;
		}
	}
	fclose(file);
	return found;
}

/* v1 has the kernel's own memory in a file of its own. */
static bool read_kernel(const struct memory_cgroup *cgroup, uint64_t *bytes)
{
	char name[NAME_MAX_BYTES];
	FILE *file = fopen(file_of(cgroup, "memory.kmem.usage_in_bytes", name), "re");
	const bool read = file && fscanf(file, "%" SCNu64, bytes) == 1;

	if (file)
		fclose(file);
	return read;
}

bool memory_cgroup_parts(const struct memory_cgroup *cgroup, struct memory_parts *parts)
{
	/* total_: with the cgroups below. "file" has shmem, too. */
	static const char *const v1[4] = {"total_rss", "total_shmem", "total_cache", NULL};
	static const char *const v2[4] = {"anon", "shmem", "file", "kernel"};
	uint64_t *const values[4] = {&parts->anon, &parts->shmem, &parts->file, &parts->kernel};

	*parts = (struct memory_parts){0};
	if (!read_stat(cgroup, cgroup->v1 ? v1 : v2, values))
		return false;
	if (cgroup->v1 && !read_kernel(cgroup, &parts->kernel))
		return false;
	parts->file = since(parts->shmem, parts->file);
	return true;
}
