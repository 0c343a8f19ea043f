/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/mount_paths.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "kernel/file_system.h"

/* Reading takes one part of so many of the time. */
static const uint64_t REST = 20;

/* ---- A list -----------------------------------------------------------------------------------
 */

static int add(struct mount_list *mounts, uint32_t device, const char *root, const char *point)
{
	struct mount *list =
		array_reserve(mounts->list, mounts->n, &mounts->cap, sizeof(*mounts->list));
	struct mount mount = {.device = device};

	if (!list)
		return -ENOMEM;
	mounts->list = list;
	mounts->bytes += strlen(root) + strlen(point) + sizeof(mount);
	if (mounts->most && mounts->bytes > mounts->most)
		return -E2BIG;
	mount.root = strdup(strcmp(root, "/") ? root : "");
	mount.point = strdup(strcmp(point, "/") ? point : "");
	list[mounts->n++] = mount;
	return mount.root && mount.point ? 0 : -ENOMEM;
}

static void skip_line(FILE *file)
{
	int c;

	while ((c = getc(file)) != EOF && c != '\n')
		;
}

int mount_list_read(struct mount_list *mounts, FILE *mountinfo)
{
	char line[2 * PATH_MAX + 256], root[PATH_MAX], point[PATH_MAX];
	unsigned int major, minor;
	int err = 0;

	while (!err && fgets(line, sizeof(line), mountinfo)) {
		if (!strchr(line, '\n')) {
			skip_line(mountinfo); /* of a path that no system call takes */
			continue;
		}
		if (sscanf(line, "%*u %*u %u:%u %4095s %4095s", &major, &minor, root, point) != 4 ||
		    *root != '/' || *point != '/')
			continue;
		file_system_unescape(root);
		file_system_unescape(point);
		err = add(mounts, file_system_device(major, minor), root, point);
	}
	return err;
}

void mount_list_free(struct mount_list *mounts)
{
	for (size_t i = 0; i < mounts->n; i++) {
		free(mounts->list[i].root);
		free(mounts->list[i].point);
	}
	free(mounts->list);
	*mounts = (struct mount_list){0};
}

char *mount_list_find(const struct mount_list *mounts, uint32_t device, const char *within)
{
	const struct mount *best = NULL;
	size_t best_len = 0;
	char *path;

	for (size_t i = 0; i < mounts->n; i++) {
		const struct mount *mount = &mounts->list[i];
		const size_t len = strlen(mount->root);

		if (mount->device != device || strncmp(mount->root, within, len) != 0 ||
		    within[len] != '/' || (best && len <= best_len))
			continue;
		best = mount;
		best_len = len;
	}
	return best && asprintf(&path, "%s%s", best->point, within + best_len) >= 0 ? path : NULL;
}

/* ---- Namespaces -------------------------------------------------------------------------------
 */

/* Returns the number of the mount namespace that a process is in; 0 if nobody knows. */
static uint32_t namespace_of(uint32_t tgid)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns/mnt", tgid);
	return stat(path, &status) ? 0 : (uint32_t)status.st_ino;
}

/* Forgets the lists that were not used for the longest time. */
static void make_room(struct mount_paths *paths)
{
	for (;;) {
		struct mount_namespace *oldest = NULL;
		size_t bytes = 0;

		for (size_t i = 0; i < MOUNT_NAMESPACES; i++) {
			struct mount_namespace *namespace = &paths->known[i];

			bytes += namespace->mounts.bytes;
			if (namespace->mounts.n && (!oldest || namespace->used < oldest->used))
				oldest = namespace;
		}
		if (!paths->most || bytes <= paths->most || !oldest)
			return;
		mount_list_free(&oldest->mounts);
		oldest->due_ns = 0;
	}
}

/*
 * Keeps what is known if the process is gone, or in another namespace by now: the next who is in
 * this one may tell.
 */
static void read_again(struct mount_paths *paths, struct mount_namespace *namespace, uint32_t tgid)
{
	const uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	struct mount_list mounts = {.most = paths->most};
	FILE *mountinfo;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/mountinfo", tgid);
	mountinfo = fopen(path, "re");
	/* The process is asked after it was opened: then this is of that namespace. */
	if (mountinfo && namespace_of(tgid) == namespace->number &&
	    !mount_list_read(&mounts, mountinfo)) {
		mount_list_free(&namespace->mounts);
		namespace->mounts = mounts;
		make_room(paths);
		namespace->due_ns = begin_ns + (clock_ns(CLOCK_MONOTONIC) - begin_ns) * (REST + 1);
	} else {
		mount_list_free(&mounts);
	}
	if (mountinfo)
		fclose(mountinfo);
}

static struct mount_namespace *find_namespace(struct mount_paths *paths, uint32_t number)
{
	struct mount_namespace *oldest = &paths->known[0];

	for (size_t i = 0; i < MOUNT_NAMESPACES; i++) {
		struct mount_namespace *namespace = &paths->known[i];

		if (namespace->number == number)
			return namespace;
		if (namespace->used < oldest->used)
			oldest = namespace;
	}
	mount_list_free(&oldest->mounts);
	*oldest = (struct mount_namespace){.number = number};
	return oldest;
}

static char *find_in(struct mount_paths *paths, uint32_t tgid, uint32_t number, uint32_t device,
		     const char *within)
{
	struct mount_namespace *namespace = find_namespace(paths, number);

	namespace->used = ++paths->uses;
	if (clock_ns(CLOCK_MONOTONIC) >= namespace->due_ns)
		read_again(paths, namespace, tgid);
	return mount_list_find(&namespace->mounts, device, within);
}

char *mount_paths_find(struct mount_paths *paths, uint32_t tgid, uint32_t number, uint32_t device,
		       const char *within)
{
	const uint32_t own = (uint32_t)getpid();
	char *path = number ? find_in(paths, tgid, number, device, within) : NULL;

	return path ? path : find_in(paths, own, namespace_of(own), device, within);
}

char *mount_paths_find_there(struct mount_paths *paths, uint32_t tgid, uint32_t number,
			     uint32_t device, const char *within)
{
	return number ? find_in(paths, tgid, number, device, within) : NULL;
}

void mount_paths_free(struct mount_paths *paths)
{
	for (size_t i = 0; i < MOUNT_NAMESPACES; i++)
		mount_list_free(&paths->known[i].mounts);
}
