/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/hierarchy.h"

#include <string.h>

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
static bool find_path(FILE *cgroups, const char *controller, struct hierarchy *h)
{
	char line[PATH_MAX + 64];
	bool v1 = false, any = false;

	while (!v1 && fgets(line, sizeof(line), cgroups)) {
		char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		v1 = has_word(list + 1, controller);
		if (!v1 && list[1])
			continue;
		if (strlen(path) >= sizeof(h->path))
			return false;
		memcpy(h->path, path, strlen(path) + 1);
		h->v1 = v1;
		any = true;
	}
	return any && h->path[0] == '/' && !is_outside(h->path);
}

/*
 * A line of mountinfo is "36 35 0:29 ROOT MOUNT OPTIONS [TAGS...] - TYPE SOURCE SUPER". ROOT is the
 * directory of the hierarchy that is mounted: the path has to be below it.
 */
static bool read_mount(char *line, const char *controller, struct hierarchy *h)
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
	if (strcmp(type, h->v1 ? "cgroup" : "cgroup2") || !super)
		return false;
	super[1 + strcspn(super + 1, "\n")] = '\0';
	if (h->v1 && !has_word(super + 1, controller))
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

bool hierarchy_find(FILE *cgroups, FILE *mounts, const char *controller, struct hierarchy *h)
{
	char line[2 * PATH_MAX];

	if (!find_path(cgroups, controller, h))
		return false;
	while (fgets(line, sizeof(line), mounts))
		if (read_mount(line, controller, h))
			return true;
	return false;
}

void hierarchy_upwards(const struct hierarchy *h, hierarchy_each_fn each, void *context)
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

bool hierarchy_of(uint32_t pid, const char *controller, struct hierarchy *h)
{
	char name[64];
	FILE *cgroups, *mounts;
	bool found;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", pid);
	cgroups = fopen(name, "re");
	mounts = fopen("/proc/self/mountinfo", "re");
	found = cgroups && mounts && hierarchy_find(cgroups, mounts, controller, h);
	if (cgroups)
		fclose(cgroups);
	if (mounts)
		fclose(mounts);
	return found;
}

/* Returns how many bytes there are, with a NUL behind them; 0: the process is gone. */
static size_t read_of(uint32_t pid, const char *file, char *text, size_t size)
{
	char name[64];
	size_t len = 0;
	FILE *in;

	snprintf(name, sizeof(name), "/proc/%u/%s", pid, file);
	in = fopen(name, "re");
	if (in) {
		len = fread(text, 1, size - 1, in);
		fclose(in);
	}
	text[len] = '\0';
	return len;
}

/* "42 (comm) S 1 42 42 0 -1 4194560 ...": the seventh after the name are the task's flags. */
static bool is_exiting(uint32_t pid)
{
	enum { PF_EXITING = 4 };
	char stat[1024], *end;
	unsigned int flags;

	if (!read_of(pid, "stat", stat, sizeof(stat)))
		return true;
	end = strrchr(stat, ')');
	return !end || sscanf(end + 1, " %*c %*s %*s %*s %*s %*s %u", &flags) != 1 ||
	       flags & PF_EXITING;
}

/* In v1 the kernel says "/" of a process from when it begins to exit. */
bool hierarchy_moved(uint32_t pid, char *text, size_t size)
{
	char now[2 * PATH_MAX];
	const size_t room = sizeof(now) < size ? sizeof(now) : size,
		     len = read_of(pid, "cgroup", now, room);

	if (!len || !strcmp(now, text) || is_exiting(pid))
		return false;
	memcpy(text, now, len + 1);
	return true;
}
