/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/file_system.h"
#include "kernel/pids.h"
#include "kernel/procfs.h"

static const int64_t SECOND = 1000000000, TICK = 10000000; /* ns */

static bool is_here(pid_t pid)
{
	char path[64], ours[64] = "", its[sizeof(ours)] = "", root[2];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) <= 0 ||
	    readlink(path, its, sizeof(its) - 1) <= 0 || strcmp(ours, its) != 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	return readlink(path, root, sizeof(root)) == 1; /* "/" */
}

int perf_map_of(struct perf_map *map, pid_t pid, uint64_t started_ns)
{
	struct stat process;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	*map = (struct perf_map){.pid = pid,
				 .started_ns = started_ns,
				 .own = pids_innermost(pid),
				 .is_here = is_here(pid)};
	if (!map->own || stat(path, &process) || !procfs_is_still(pid, started_ns))
		return -ESRCH;
	map->user = process.st_uid;
	return 0;
}

static FILE *open_mounts(const struct perf_map *map)
{
	char path[64];

	if (map->is_here)
		return fopen("/proc/self/mountinfo", "re");
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", map->pid);
	return fopen(path, "re");
}

static int open_root(const struct perf_map *map)
{
	char path[64];

	if (map->is_here)
		return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/root", map->pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/*
 * The path is the process's: where it leads is looked up in what the kernel has in memory alone
 * (RESOLVE_CACHED), and without opening it. So a file system of the process's own (FUSE) is not
 * asked.
 */
static int find(const struct perf_map *map)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED,
	};
	const int root = open_root(map);
	char path[64];
	int fd;

	if (root < 0)
		return -errno;
	snprintf(path, sizeof(path), "tmp/perf-%d.map", map->own);
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0)
		fd = errno == EAGAIN ? -ENOENT : -errno;
	close(root);
	return fd;
}

static bool answers(const struct perf_map *map, const struct statx *file)
{
	FILE *mounts = file->stx_mask & STATX_MNT_ID ? open_mounts(map) : NULL;
	const bool yes =
		mounts && file_system_of_mount_answers(mounts, (unsigned int)file->stx_mnt_id);

	if (mounts)
		fclose(mounts);
	return yes;
}

/* A process may see a file of root's that its user may not read. */
static bool is_its_own(const struct perf_map *map, const struct statx *file)
{
	return file->stx_uid == map->user || (!file->stx_uid && file->stx_mode & S_IROTH);
}

/* It may be of a process that had the number before. Files have the time of the tick before. */
static bool is_older(const struct perf_map *map, const struct statx *file)
{
	const int64_t of_day = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME));
	const int64_t began = (int64_t)map->started_ns + of_day;

	return file->stx_mtime.tv_sec * SECOND + file->stx_mtime.tv_nsec + TICK < began;
}

static bool may_be_read(const struct perf_map *map, const struct statx *file)
{
	return S_ISREG(file->stx_mode) && is_its_own(map, file) && answers(map, file);
}

static int open_found(const struct perf_map *map, int there)
{
	struct statx file;
	char path[64];
	int fd;

	if (statx(there, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_TYPE | STATX_MODE | STATX_UID | STATX_MTIME | STATX_MNT_ID, &file))
		return -errno;
	/* First what takes no time: it is looked for again and again. */
	if (is_older(map, &file))
		return -ENOENT;
	if (!may_be_read(map, &file))
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", there);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int perf_map_open(const struct perf_map *map)
{
	const int there = find(map);
	int fd;

	if (there < 0)
		return there;
	fd = open_found(map, there);
	close(there);
	if (fd >= 0 && !map->is_here && !procfs_is_still(map->pid, map->started_ns)) {
		close(fd);
		return -ESRCH;
	}
	return fd;
}
