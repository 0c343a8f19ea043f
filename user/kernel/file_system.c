/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/file_system.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/clock.h"

enum { ANSWER_MS = 200 };

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
bool file_system_find(FILE *mounts, uint32_t device, char *mount, size_t size, bool *is_local)
{
	char line[2 * PATH_MAX], path[PATH_MAX];
	unsigned int major, minor;

	while (fgets(line, sizeof(line), mounts)) {
		const char *type = strstr(line, " - ");

		if (!type || sscanf(line, "%*u %*u %u:%u %*s %4095s", &major, &minor, path) != 3 ||
		    file_system_device(major, minor) != device)
			continue;
		file_system_unescape(path);
		if (strlen(path) >= size)
			return false;
		memcpy(mount, path, strlen(path) + 1);
		*is_local = major || !strncmp(type, " - tmpfs ", strlen(" - tmpfs "));
		return true;
	}
	return false;
}

struct question {
	const struct wire_written *written;
	const char *mount;
	bool as_root;
	bool hangs; /* out: nobody answered in time */
};

/* Returns false if nobody knows: a file system that is not of storage has no size. */
static bool ask(const struct question *q, struct file_system_room *room)
{
	struct statvfs vfs;

	if (statvfs(q->mount, &vfs))
		return false;
	*room = (struct file_system_room){
		.size = (uint64_t)vfs.f_blocks * vfs.f_frsize,
		.left = (uint64_t)(q->as_root ? vfs.f_bfree : vfs.f_bavail) * vfs.f_frsize};
	quota_read(q->mount, QUOTA_USER, q->written->uid, &room->user);
	quota_read(q->mount, QUOTA_GROUP, q->written->gid, &room->group);
	return room->size;
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
	q->hangs = !aside_has_answered(&aside, ANSWER_MS);
	knows = !q->hangs && read(aside.fd, room, sizeof(*room)) == sizeof(*room);
	aside_end(&aside);
	return knows;
}

static bool find_and_ask(struct question *q, char *mount, size_t size,
			 struct file_system_room *room)
{
	bool is_local, is_there;
	FILE *mounts = fopen("/proc/self/mountinfo", "re");

	if (!mounts)
		return false;
	is_there = file_system_find(mounts, q->written->device, mount, size, &is_local);
	fclose(mounts);
	return is_there && (is_local ? ask(q, room) : ask_aside(q, room));
}

/* Any answer takes its time, and processes may end as often as their user likes. */
bool file_system_of(const struct wire_written *written, bool as_root, struct patience *patience,
		    char *mount, size_t size, struct file_system_room *room)
{
	struct question q = {.written = written, .mount = mount, .as_root = as_root};
	const uint64_t began = clock_ms();
	uint64_t now;
	bool knows;

	if (!patience_has(patience, written->device, began))
		return false;
	knows = find_and_ask(&q, mount, size, room);
	now = clock_ms();
	if (q.hangs)
		patience_lose(patience, written->device, now, now - began);
	else
		patience_spend(patience, written->device, now, now - began);
	return knows;
}
