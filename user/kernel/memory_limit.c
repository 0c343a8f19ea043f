/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/memory_limit.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernel/procfs.h"

/* PAGE_COUNTER_MAX in bytes is what v1 writes for no limit: somewhat less than 2^63. */
static const uint64_t NO_LIMIT = 1ull << 62;

/* Gets the path of a cgroup below the mount. */
typedef void (*each_cgroup_fn)(void *context, const struct memory_hierarchy *h, const char *path);

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
static void each_upwards(const struct memory_hierarchy *h, each_cgroup_fn each, void *context)
{
	char path[PATH_MAX], *slash;

	memcpy(path, h->path, sizeof(path));
	do {
		each(context, h, path);
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

/* Calls each() for the memory cgroups of a process, the innermost first. */
static void each_cgroup(uint32_t pid, each_cgroup_fn each, void *context)
{
	struct memory_hierarchy h;

	if (memory_hierarchy_of(pid, &h))
		each_upwards(&h, each, context);
}

static void note_lowest(void *context, const struct memory_hierarchy *h, const char *path)
{
	struct memory_limit *limit = context;
	const uint64_t bytes = read_limit(h, path);

	if (bytes >= NO_LIMIT || (limit->bytes && bytes >= limit->bytes))
		return;
	limit->bytes = bytes;
	snprintf(limit->of, sizeof(limit->of), "cgroup %.4000s", path[0] ? path : "/");
}

void memory_limit_of(uint32_t pid, struct memory_limit *limit)
{
	struct procfs_memory machine = {0};

	limit->bytes = 0;
	limit->of[0] = '\0';
	each_cgroup(pid, note_lowest, limit);
	if (procfs_memory(&machine) || (limit->bytes && limit->bytes <= machine.total))
		return;
	limit->bytes = machine.total;
	snprintf(limit->of, sizeof(limit->of), "machine");
}

/* ---- What is left ------------------------------------------------------------------------------
 */

enum { LEVELS = MEMORY_ROOMS - 3, STAT_MAX = 16384 };

/* A memory cgroup that the process is in. */
struct level {
	char *directory;
	char *of; /* "cgroup /job" */
	bool v1;
};

struct memory_limits {
	uint32_t pid;
	char cgroups[2 * PATH_MAX]; /* its /proc/PID/cgroup, which the levels were found by */
	struct level levels[LEVELS];
	unsigned int n_levels;
};

static void free_level(struct level *level)
{
	free(level->directory);
	free(level->of);
}

static void add_level(void *context, const struct memory_hierarchy *h, const char *path)
{
	struct memory_limits *limits = context;
	struct level *level;

	if (limits->n_levels == LEVELS)
		return;
	level = &limits->levels[limits->n_levels];
	*level = (struct level){.v1 = h->v1};
	if (asprintf(&level->directory, "%s%s", h->mount, path) < 0)
		level->directory = NULL;
	if (asprintf(&level->of, "cgroup %s", path[0] ? path : "/") < 0)
		level->of = NULL;
	if (level->directory && level->of)
		limits->n_levels++;
	else
		free_level(level);
}

struct memory_limits *memory_limits_new(uint32_t pid)
{
	struct memory_limits *limits = calloc(1, sizeof(*limits));

	if (limits)
		limits->pid = pid;
	return limits;
}

static void forget_levels(struct memory_limits *limits)
{
	while (limits->n_levels)
		free_level(&limits->levels[--limits->n_levels]);
}

void memory_limits_free(struct memory_limits *limits)
{
	if (!limits)
		return;
	forget_levels(limits);
	free(limits);
}

/* A process may be moved, as by the shell that starts it. Its cgroups outlive it. */
static void follow(struct memory_limits *limits)
{
	char name[64], now[sizeof(limits->cgroups)];
	FILE *file;
	size_t len;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", limits->pid);
	file = fopen(name, "re");
	if (!file)
		return;
	len = fread(now, 1, sizeof(now) - 1, file);
	fclose(file);
	now[len] = '\0';
	if (!len || !strcmp(now, limits->cgroups))
		return;
	memcpy(limits->cgroups, now, len + 1);
	forget_levels(limits);
	each_cgroup(limits->pid, add_level, limits);
}

/* Returns how many bytes were read, with a NUL behind them; 0: none, as the cgroup is gone. */
static size_t read_file(const struct level *level, const char *name, char *text, size_t size)
{
	char path[3 * PATH_MAX];
	size_t len;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", level->directory, name);
	file = fopen(path, "re");
	len = file ? fread(text, 1, size - 1, file) : 0;
	if (file)
		fclose(file);
	text[len] = '\0';
	return len;
}

/* Returns false if there is no number: "max". The root of v2 has no limit. */
static bool read_number(const struct level *level, const char *name, uint64_t *number)
{
	char text[32];

	return read_file(level, name, text, sizeof(text)) && sscanf(text, "%" SCNu64, number) == 1;
}

uint64_t memory_stat_cache(char *stat)
{
	uint64_t own = 0, total = 0, number;
	bool has_total = false;
	char *line;

	while ((line = strsep(&stat, "\n"))) {
		if (sscanf(line, "total_inactive_file %" SCNu64, &number) == 1 ||
		    sscanf(line, "total_active_file %" SCNu64, &number) == 1) {
			has_total = true;
			total += number;
		} else if (sscanf(line, "inactive_file %" SCNu64, &number) == 1 ||
			   sscanf(line, "active_file %" SCNu64, &number) == 1) {
			own += number;
		}
	}
	return has_total ? total : own;
}

/* Page cache goes before anybody is killed. */
static bool read_level(const struct level *level, struct memory_room *room)
{
	const char *limit_file = level->v1 ? "memory.limit_in_bytes" : "memory.max";
	const char *used_file = level->v1 ? "memory.usage_in_bytes" : "memory.current";
	uint64_t limit, used, cache;
	char stat[STAT_MAX];

	if (!read_number(level, limit_file, &limit) || limit >= NO_LIMIT ||
	    !read_number(level, used_file, &used) ||
	    !read_file(level, "memory.stat", stat, sizeof(stat)))
		return false;
	cache = memory_stat_cache(stat);
	used = used > cache ? used - cache : 0;
	*room = (struct memory_room){
		.of = level->of, .limit = limit, .left = used < limit ? limit - used : 0};
	room->least = room->left;
	return true;
}

/* Of /proc/PID/status, in bytes; 0: not known. */
struct address_space {
	uint64_t size, peak, data;
};

static void read_address_space(uint32_t pid, struct address_space *space)
{
	char name[64], line[256];
	uint64_t kib;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%u/status", pid);
	file = fopen(name, "re");
	while (file && !space->data && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "VmPeak: %" SCNu64, &kib) == 1)
			space->peak = kib << 10;
		else if (sscanf(line, "VmSize: %" SCNu64, &kib) == 1)
			space->size = kib << 10;
		else if (sscanf(line, "VmData: %" SCNu64, &kib) == 1)
			space->data = kib << 10;
	}
	if (file)
		fclose(file);
}

static bool room_of_process(const char *of, uint64_t limit, uint64_t used, uint64_t most,
			    struct memory_room *room)
{
	if (limit == RLIM_INFINITY || !used)
		return false;
	*room = (struct memory_room){.of = of,
				     .limit = limit,
				     .left = used < limit ? limit - used : 0,
				     .least = most < limit ? limit - most : 0,
				     .of_process = true};
	return true;
}

/* Returns how many there are in rooms. */
static size_t read_process(uint32_t pid, struct memory_room *rooms)
{
	struct rlimit as, data;
	struct address_space space = {0};
	size_t n = 0;

	if (!pid || prlimit((pid_t)pid, RLIMIT_AS, NULL, &as) ||
	    prlimit((pid_t)pid, RLIMIT_DATA, NULL, &data) ||
	    (as.rlim_cur == RLIM_INFINITY && data.rlim_cur == RLIM_INFINITY))
		return 0;
	read_address_space(pid, &space);
	if (room_of_process("RLIMIT_AS", as.rlim_cur, space.size, space.peak, &rooms[n]))
		rooms[n++].index = LEVELS;
	if (room_of_process("RLIMIT_DATA", data.rlim_cur, space.data, space.data, &rooms[n]))
		rooms[n++].index = LEVELS + 1;
	return n;
}

size_t memory_limits_read(struct memory_limits *limits, uint32_t pid,
			  struct memory_room rooms[MEMORY_ROOMS])
{
	struct procfs_memory machine;
	size_t n = 0;

	follow(limits);
	for (unsigned int i = 0; i < limits->n_levels; i++)
		if (read_level(&limits->levels[i], &rooms[n]))
			rooms[n++].index = i;
	n += read_process(pid, &rooms[n]);
	if (!procfs_memory(&machine))
		rooms[n++] = (struct memory_room){.of = "machine",
						  .limit = machine.total,
						  .left = machine.available,
						  .least = machine.available,
						  .index = LEVELS + 2};
	return n;
}

bool memory_is_limited(uint32_t pid)
{
	struct memory_limits *limits = memory_limits_new(pid);
	struct memory_room rooms[MEMORY_ROOMS];
	const size_t n = limits ? memory_limits_read(limits, pid, rooms) : 0;
	struct procfs_memory machine = {0};
	bool is_limited = false;

	for (size_t i = 0; i < n && !procfs_memory(&machine); i++)
		is_limited |= rooms[i].of_process || rooms[i].limit < machine.total;
	memory_limits_free(limits);
	return is_limited;
}
