/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/file_there.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/clock.h"
#include "kernel/file_system.h"

static const uint64_t MOST_NS = 2000000000;

/* Of the handles that name_to_handle_at(2) gives: fid types of include/linux/exportfs.h and of
 * fs/xfs/xfs_export.h, with which we make them ourselves. */
enum { INODE_32 = 1, XFS_INODE_64 = 0x81 };

union handle {
	struct file_handle head;
	unsigned char all[sizeof(struct file_handle) + sizeof(uint64_t) + sizeof(uint32_t)];
};

static struct file_there_mount *mount_of(struct file_there *f, uint32_t device)
{
	struct file_there_mount *mount = f->mounts;
	struct statfs fs;

	for (; mount < f->mounts + f->n; mount++)
		if (mount->device == device)
			return mount;
	if (f->n == WIRE_SPACES)
		return NULL;
	f->n++;
	*mount = (struct file_there_mount){.device = device, .fd = file_system_open(device)};
	if (mount->fd >= 0 && !fstatfs(mount->fd, &fs))
		mount->type = (unsigned long)fs.f_type;
	return mount;
}

/* Returns false: nobody knows how one is made there. */
static bool make_handle(union handle *handle, unsigned long fs, const struct wire_file *file)
{
	const uint32_t inode = (uint32_t)file->inode, generation = (uint32_t)file->generation;
	const uint64_t whole = file->inode;
	unsigned char *bytes = handle->all + sizeof(handle->head);
	const void *number = &inode;
	unsigned int size = sizeof(inode);

	memset(handle, 0, sizeof(*handle));
	switch (fs) {
	case EXT4_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
		handle->head.handle_type = INODE_32;
		break;
	case XFS_SUPER_MAGIC:
		handle->head.handle_type = XFS_INODE_64;
		number = &whole;
		size = sizeof(whole);
		break;
	default:
		return false;
	}
	memcpy(bytes, number, size);
	memcpy(bytes + size, &generation, sizeof(generation));
	handle->head.handle_bytes = size + sizeof(generation);
	return true;
}

struct question {
	int mount;
	union handle handle;
};

static bool is_of_mount(void *context, int fd, const char *link)
{
	const struct question *q = context;

	(void)link;
	return fd == q->mount;
}

/* A file that somebody has open still, and that has no name, can be opened: it is gone. */
static enum file_there_answer look(struct question *q)
{
	const int fd = open_by_handle_at(q->mount, &q->handle.head, O_PATH | O_CLOEXEC);
	struct stat found;
	bool is_known;

	if (fd < 0)
		return errno == ESTALE ? FILE_IS_GONE : FILE_NOBODY_KNOWS;
	is_known = !fstat(fd, &found);
	close(fd);
	if (!is_known)
		return FILE_NOBODY_KNOWS;
	return found.st_nlink ? FILE_IS_THERE : FILE_IS_GONE;
}

static void answer(void *context, int fd)
{
	const enum file_there_answer found = look(context);

	if (write(fd, &found, sizeof(found)) != sizeof(found))
		_exit(1);
}

/* The table of inodes is read from the disk, which may hang: it may be a server's. */
static enum file_there_answer ask(struct file_there_mount *mount, const struct wire_file *file)
{
	struct question q = {.mount = mount->fd};
	enum file_there_answer found = FILE_NOBODY_KNOWS;
	struct aside aside;

	if (!make_handle(&q.handle, mount->type, file) ||
	    aside_begin(&aside, answer, is_of_mount, &q))
		return FILE_NOBODY_KNOWS;
	if (!aside_has_answered(&aside, FILE_SYSTEM_ANSWER_MS)) {
		close(mount->fd);
		mount->fd = -1;
	} else if (read(aside.fd, &found, sizeof(found)) != sizeof(found)) {
		found = FILE_NOBODY_KNOWS;
	}
	aside_end(&aside);
	return found;
}

enum file_there_answer file_there_ask(struct file_there *f, const struct wire_file *file)
{
	const uint64_t began = clock_ns(CLOCK_MONOTONIC);
	enum file_there_answer found = FILE_NOBODY_KNOWS;
	struct file_there_mount *mount;

	if (f->spent_ns >= MOST_NS)
		return FILE_NOBODY_KNOWS;
	mount = mount_of(f, (uint32_t)file->device);
	if (mount && mount->fd >= 0)
		found = ask(mount, file);
	f->spent_ns += clock_ns(CLOCK_MONOTONIC) - began;
	return found;
}

void file_there_close(struct file_there *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->mounts[i].fd >= 0)
			close(f->mounts[i].fd);
	f->n = 0;
}
