/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/file_system.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/clock.h"

enum { MOST_MOUNTS = 8 }; /* of one file system that are tried */

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
	bool waits; /* out: for somebody's answer */
	bool hangs; /* out: nobody answered in time */
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

/* Returns false if nobody knows: a file system that is not of storage has no size. */
static bool ask(const struct question *q, struct file_system_room *room)
{
	const int fd = open(q->mount, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	bool knows;

	if (fd < 0)
		return false;
	knows = ask_of(fd, q, room);
	close(fd);
	return knows;
}

static void answer(void *context, int fd)
{
	struct file_system_room room;

	if (ask(context, &room) && write(fd, &room, sizeof(room)) != sizeof(room))
		_exit(1);
}

static bool ask_aside(struct question *q, struct file_system_room *room)
{
	struct aside aside;
	bool knows;

	if (aside_begin(&aside, answer, NULL, q))
		return false;
	q->waits = true;
	q->hangs = !aside_has_answered(&aside, FILE_SYSTEM_ANSWER_MS);
	knows = !q->hangs && read(aside.fd, room, sizeof(*room)) == sizeof(*room);
	aside_end(&aside);
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

/* Any mount of it will do that no other covers. */
static bool find_and_ask(struct question *q, char *mount, size_t size,
			 struct file_system_room *room)
{
	FILE *mounts = fopen(own_mounts, "re");
	bool knows = false;

	for (int i = 0; mounts && !knows && !q->hangs && i < MOST_MOUNTS &&
			file_system_find(mounts, q->device, &q->id, mount, size);
	     i++)
		knows = is_near(mount) ? ask(q, room) : ask_aside(q, room);
	if (mounts)
		fclose(mounts);
	return knows;
}

int file_system_open(uint32_t device)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	FILE *mounts = fopen(own_mounts, "re");
	char mount[PATH_MAX];
	unsigned int id;
	int fd = -1;

	for (int i = 0; mounts && fd < 0 && i < MOST_MOUNTS &&
			file_system_find(mounts, device, &id, mount, sizeof(mount));
	     i++) {
		if (!is_near(mount))
			continue;
		fd = open(mount, flags);
		if (fd < 0 || is_mount(fd, id))
			continue;
		close(fd);
		fd = -1;
	}
	if (mounts)
		fclose(mounts);
	return fd;
}

static uint64_t cpu_ms(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1000000;
}

/*
 * Any answer takes its time, and processes may end as often as their user likes. Who answers by
 * himself is not charged for the time that we had no CPU.
 */
static bool ask_patiently(struct question *q, struct patience *patience, char *mount, size_t size,
			  struct file_system_room *room)
{
	const uint64_t began = clock_ms(), began_cpu = cpu_ms();
	uint64_t now, took;
	bool knows;

	if (!patience_has(patience, q->device, began))
		return false;
	knows = find_and_ask(q, mount, size, room);
	now = clock_ms();
	took = q->waits ? now - began : cpu_ms() - began_cpu;
	if (q->hangs)
		patience_lose(patience, q->device, now, took);
	else
		patience_spend(patience, q->device, now, took);
	return knows;
}

bool file_system_of(const struct wire_written *written, bool as_root, struct patience *patience,
		    char *mount, size_t size, struct file_system_room *room)
{
	struct question q = {
		.device = written->device, .written = written, .mount = mount, .as_root = as_root};

	return ask_patiently(&q, patience, mount, size, room);
}

bool file_system_space(uint32_t device, struct patience *patience, char *mount, size_t size,
		       struct file_system_room *room)
{
	struct question q = {.device = device, .mount = mount};

	return ask_patiently(&q, patience, mount, size, room);
}
