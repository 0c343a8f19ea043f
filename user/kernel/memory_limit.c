/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/memory_limit.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernel/hierarchy.h"
#include "kernel/procfs.h"

/* PAGE_COUNTER_MAX in bytes is what v1 writes for no limit: somewhat less than 2^63. */
static const uint64_t NO_LIMIT = 1ull << 62;

/* ---- How much ----------------------------------------------------------------------------------
 */

/* Returns NO_LIMIT if there is none, or none that can be read: the root has no such file. */
static uint64_t read_limit(const struct hierarchy *h, const char *path)
{
	char name[3 * PATH_MAX];
	uint64_t bytes = NO_LIMIT;
	FILE *file;

	snprintf(name, sizeof(name), "%s%s/%s", h->mount, path,
		 h->v1 ? "memory.limit_in_bytes" : "memory.max");
	file = fopen(name, "re");
	if (!file)
		return NO_LIMIT;
	if (fscanf(file, "%" SCNu64, &bytes) != 1) /* "max" */
		bytes = NO_LIMIT;
	fclose(file);
	return bytes;
}

/* Calls each() for the memory cgroups of a process, the innermost first. */
static void each_cgroup(uint32_t pid, hierarchy_each_fn each, void *context)
{
	struct hierarchy h;

	if (hierarchy_of(pid, "memory", &h))
		hierarchy_upwards(&h, each, context);
}

static void note_lowest(void *context, const struct hierarchy *h, const char *path)
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

static void add_level(void *context, const struct hierarchy *h, const char *path)
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
	if (!hierarchy_moved(limits->pid, limits->cgroups, sizeof(limits->cgroups)))
		return;
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

/* What is read of memory.stat. v1 calls FILE_PAGES "cache". */
enum stat_key { INACTIVE, ACTIVE, FILE_PAGES, SHMEM, SWAPCACHED, UNEVICTABLE, STAT_KEYS };

static enum stat_key key_of(const char *name)
{
	static const char *const names[STAT_KEYS] = {"inactive_file", "active_file", "file",
						     "shmem",	      "swapcached",  "unevictable"};
	enum stat_key key = 0;

	if (!strcmp(name, "cache"))
		return FILE_PAGES;
	while (key < STAT_KEYS && strcmp(name, names[key]) != 0)
		key++;
	return key;
}

static uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/*
 * Pages that reclaim has taken off the lists for a moment (isolate_lru_folios() in mm/vmscan.c) are
 * in no list's number: with large folios that may be all of a small cgroup. They are in that of all
 * pages of files, which has those that cannot be reclaimed besides. Each of the two is a lower
 * bound.
 */
uint64_t memory_stat_cache(char *stat)
{
	static const char of_tree[] = "total_"; /* in v1: with the cgroups below */
	uint64_t own[STAT_KEYS + 1] = {0}, total[STAT_KEYS + 1] = {0}, number, listed, files;
	const uint64_t *numbers = own;
	char *line, name[64];

	while ((line = strsep(&stat, "\n"))) {
		if (sscanf(line, "%63s %" SCNu64, name, &number) != 2)
			continue;
		if (!strncmp(name, of_tree, sizeof(of_tree) - 1)) {
			numbers = total;
			total[key_of(name + sizeof(of_tree) - 1)] = number;
		} else {
			own[key_of(name)] = number;
		}
	}
	listed = numbers[INACTIVE] + numbers[ACTIVE];
	files = above(numbers[FILE_PAGES],
		      numbers[SHMEM] + numbers[SWAPCACHED] + numbers[UNEVICTABLE]);
	return files > listed ? files : listed;
}

/*
 * Page cache goes before anybody is killed. While the pages of a file are freed they are in
 * memory.stat no more, but still charged (truncate_inode_pages_range() takes up to 31 folios at
 * once): what is used is read once more after it.
 */
static bool read_level(const struct level *level, struct memory_room *room)
{
	const char *limit_file = level->v1 ? "memory.limit_in_bytes" : "memory.max";
	const char *used_file = level->v1 ? "memory.usage_in_bytes" : "memory.current";
	uint64_t limit, used, after;
	char stat[STAT_MAX];

	if (!read_number(level, limit_file, &limit) || limit >= NO_LIMIT ||
	    !read_number(level, used_file, &used) ||
	    !read_file(level, "memory.stat", stat, sizeof(stat)) ||
	    !read_number(level, used_file, &after))
		return false;
	used = above(used < after ? used : after, memory_stat_cache(stat));
	*room = (struct memory_room){
		.of = level->of, .limit = limit, .left = above(limit, used), .of_cgroup = true};
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
