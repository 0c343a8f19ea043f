/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/file_system.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/clock.h"

enum {
	MOST_MOUNTS = 8, /* of one file system that are tried */
	BUSY_MS = 2000,	 /* that a child may wait for a CPU */
};

static const char own_mounts[] = "/proc/self/mountinfo";

void file_system_unescape(char *path)
{
	char *to = path;
	unsigned int byte;

	for (; *path; *to++ = (char)byte) {
		if (*path == '\\' && sscanf(path + 1, "%3o", &byte) == 1 && strlen(path) >= 4)
			path += 4;
		else
			byte = (unsigned char)*path++;
	}
	*to = '\0';
}

/* The kernel's MKDEV(), include/linux/kdev_t.h. */
uint32_t file_system_device(unsigned int major, unsigned int minor)
{
	return major << 20 | minor;
}

/* A line of mountinfo is "36 35 0:29 ROOT MOUNT OPTIONS [TAGS...] - TYPE SOURCE SUPER". */
bool file_system_find(FILE *mounts, uint32_t device, unsigned int *id, char *mount, size_t size)
{
	char line[2 * PATH_MAX], path[PATH_MAX];
	unsigned int major, minor;

	while (fgets(line, sizeof(line), mounts)) {
		if (sscanf(line, "%u %*u %u:%u %*s %4095s", id, &major, &minor, path) != 4 ||
		    file_system_device(major, minor) != device)
			continue;
		file_system_unescape(path);
		if (strlen(path) >= size)
			continue;
		memcpy(mount, path, strlen(path) + 1);
		return true;
	}
	return false;
}

/* Of all others nobody knows whether they ask somebody. */
static bool answers_by_itself(const char *type)
{
	static const char *const all[] = {"btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs"};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(type, all[i]))
			return true;
	return false;
}

/* The root is on each way, and if it does not answer, we hang anyway. */
static bool is_on_the_way(const char *directory, const char *path)
{
	const size_t len = strlen(directory);

	return !strncmp(directory, path, len) && (path[len] == '/' || !path[len]);
}

bool file_system_is_near(FILE *mounts, const char *mount)
{
	char line[2 * PATH_MAX], path[PATH_MAX], type[32];
	const char *end;

	while (fgets(line, sizeof(line), mounts)) {
		end = strstr(line, " - ");
		if (!end || sscanf(line, "%*u %*u %*u:%*u %*s %4095s", path) != 1 ||
		    sscanf(end, " - %31s", type) != 1)
			continue;
		file_system_unescape(path);
		if (is_on_the_way(path, mount) && !answers_by_itself(type))
			return false;
	}
	return true;
}

bool file_system_of_mount_answers(FILE *mounts, unsigned int id)
{
	char line[2 * PATH_MAX], type[32];
	unsigned int found;
	const char *end;

	while (fgets(line, sizeof(line), mounts)) {
		end = strstr(line, " - ");
		if (end && sscanf(line, "%u %*u %*u:%*u", &found) == 1 && found == id &&
		    sscanf(end, " - %31s", type) == 1)
			return answers_by_itself(type);
	}
	return false;
}

struct question {
	uint32_t device;
	const struct wire_written *written; /* NULL: quotas are nobody's business */
	const char *mount;
	unsigned int id; /* of that mount */
	bool as_root;
	bool hangs;	    /* out: nobody answered in time */
	uint64_t asleep_ms; /* out: that somebody's answer took */
	uint64_t waited_ns; /* out: the same, with what the child waited for a CPU */
};

/*
 * What root may have. ext4 keeps some clusters for itself: a 50th, at most 4096
 * (ext4_set_resv_clusters() in fs/ext4/super.c), which statfs(2) takes from f_bavail alone. What
 * btrfs calls free is not all for files, whoever asks.
 */
static uint64_t left_for_root(const struct statfs *fs)
{
	const uint64_t beyond = fs->f_bfree > fs->f_bavail ? fs->f_bfree - fs->f_bavail : 0;
	uint64_t kept = fs->f_type == EXT4_SUPER_MAGIC ? fs->f_blocks / 50 : 0;

	if (fs->f_type == BTRFS_SUPER_MAGIC)
		return fs->f_bavail;
	if (kept > 4096)
		kept = 4096;
	return fs->f_bfree - (kept < beyond ? kept : beyond);
}

/* Where a mount was, another may be by now, or may have been put on top of it. Before Linux 5.8
 * nobody knows. */
static bool is_mount(int fd, unsigned int id)
{
	struct statx found;

	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &found) &&
	       (!(found.stx_mask & STATX_MNT_ID) || found.stx_mnt_id == id);
}

static bool ask_of(int fd, const struct question *q, struct file_system_room *room)
{
	struct statfs fs;

	if (!is_mount(fd, q->id) || fstatfs(fd, &fs))
		return false;
	*room = (struct file_system_room){
		.size = (uint64_t)fs.f_blocks * (uint64_t)fs.f_frsize,
		.left = (q->as_root ? left_for_root(&fs) : (uint64_t)fs.f_bavail) *
			(uint64_t)fs.f_frsize};
	memcpy(&room->id, &fs.f_fsid, sizeof(room->id));
	if (q->written) {
		quota_read(fd, QUOTA_USER, q->written->uid, &room->user);
		quota_read(fd, QUOTA_GROUP, q->written->gid, &room->group);
	}
	return room->size;
}

/* Opens it without asking its file system. */
static int open_mount(const char *mount)
{
	return open(mount, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/*
 * The same, of a way that was near. A user's program may have been mounted on a directory of it
 * since, so it is looked up in what the kernel has in memory alone (from Linux 5.12 on): that asks
 * nobody.
 */
static int open_near(const char *mount)
{
	struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_CACHED};

	return (int)syscall(SYS_openat2, AT_FDCWD, mount, &how, sizeof(how));
}

/* Returns false if nobody knows: a file system that is not of storage has no size. */
static bool ask(int fd, const struct question *q, struct file_system_room *room)
{
	const bool knows = ask_of(fd, q, room);

	close(fd);
	return knows;
}

static void answer(void *context, int fd)
{
	const struct question *q = context;
	const int mount = open_mount(q->mount);
	struct file_system_room room;

	if (mount >= 0 && ask(mount, q, &room) && write(fd, &room, sizeof(room)) != sizeof(room))
		_exit(1);
}

/* It may sleep so long; how long it waits for a CPU is not its file system's fault. */
static bool answers(const struct aside *aside, struct aside_wait *wait)
{
	while (!aside_wait(aside, wait)) {
		if (wait->slept_ms >= FILE_SYSTEM_ANSWER_MS || wait->waited_ms >= BUSY_MS)
			return false;
		wait->asleep_ms = wait->waited_ms + FILE_SYSTEM_ANSWER_MS - wait->slept_ms;
	}
	return true;
}

static bool ask_aside(struct question *q, struct file_system_room *room)
{
	struct aside_wait wait = {.asleep_ms = FILE_SYSTEM_ANSWER_MS, .busy_ms = BUSY_MS};
	const uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct aside aside;
	bool knows;

	if (aside_begin(&aside, answer, NULL, q))
		return false;
	q->hangs = !answers(&aside, &wait);
	knows = !q->hangs && read(aside.fd, room, sizeof(*room)) == sizeof(*room);
	aside_end(&aside);
	q->asleep_ms += wait.slept_ms;
	q->waited_ns += clock_ns(CLOCK_MONOTONIC) - began;
	return knows;
}

static bool is_near(const char *mount)
{
	FILE *mounts = fopen(own_mounts, "re");
	const bool near = mounts && file_system_is_near(mounts, mount);

	if (mounts)
		fclose(mounts);
	return near;
}

static bool ask_mount(struct question *q, struct file_system_room *room)
{
	const int fd = is_near(q->mount) ? open_near(q->mount) : -1;

	return fd < 0 ? ask_aside(q, room) : ask(fd, q, room);
}

/* Any mount of it will do that no other covers. */
static bool find_and_ask(struct question *q, char *mount, size_t size,
			 struct file_system_room *room)
{
	FILE *mounts = fopen(own_mounts, "re");
	bool knows = false;

	for (int i = 0; mounts && !knows && !q->hangs && i < MOST_MOUNTS &&
			file_system_find(mounts, q->device, &q->id, mount, size);
	     i++)
		knows = ask_mount(q, room);
	if (mounts)
		fclose(mounts);
	return knows;
}

/* Returns -1 if another is mounted there. */
static int open_directory(const char *mount, unsigned int id)
{
	const int there = open_near(mount);
	int fd = -1;

	if (there < 0)
		return -1;
	if (is_mount(there, id))
		fd = openat(there, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	close(there);
	return fd;
}

int file_system_open(uint32_t device)
{
	FILE *mounts = fopen(own_mounts, "re");
	char mount[PATH_MAX];
	unsigned int id;
	int fd = -1;

	for (int i = 0; mounts && fd < 0 && i < MOST_MOUNTS &&
			file_system_find(mounts, device, &id, mount, sizeof(mount));
	     i++)
		if (is_near(mount))
			fd = open_directory(mount, id);
	if (mounts)
		fclose(mounts);
	return fd;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Any answer takes its time, and processes may end as often as their user likes. Nobody is charged
 * for the time that we, or our child, had no CPU; but who asks often may reckon with it (took_ns).
 */
static enum file_system_answer ask_patiently(struct question *q, struct patience *patience,
					     char *mount, size_t size,
					     struct file_system_room *room, uint64_t *took_ns)
{
	const uint64_t began = clock_ms(), began_cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t cpu_ns;
	bool knows;

	*took_ns = 0;
	if (patience_rests(patience, q->device, began))
		return FILE_SYSTEM_UNKNOWN;
	if (!patience_has(patience, q->device, began))
		return FILE_SYSTEM_NOT_ASKED;
	knows = find_and_ask(q, mount, size, room);
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_cpu;
	*took_ns = larger(cpu_ns, q->waited_ns);
	patience_spend(patience, q->device, clock_ms(), q->asleep_ms + cpu_ns / 1000000);
	if (q->hangs)
		patience_rest(patience, q->device, clock_ms());
	return knows ? FILE_SYSTEM_KNOWN : FILE_SYSTEM_UNKNOWN;
}

bool file_system_of(const struct wire_written *written, bool as_root, struct patience *patience,
		    char *mount, size_t size, struct file_system_room *room)
{
	struct question q = {
		.device = written->device, .written = written, .mount = mount, .as_root = as_root};
	uint64_t took_ns;

	return ask_patiently(&q, patience, mount, size, room, &took_ns) == FILE_SYSTEM_KNOWN;
}

enum file_system_answer file_system_space(uint32_t device, struct patience *patience, char *mount,
					  size_t size, struct file_system_room *room,
					  uint64_t *took_ns)
{
	struct question q = {.device = device, .mount = mount};

	return ask_patiently(&q, patience, mount, size, room, took_ns);
}
