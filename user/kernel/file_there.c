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

enum {
	ANSWER_MS = 1000,      /* what takes longer to answer about a file is asked no more */
	BUSY_MS = 20000,       /* the same, while we have no CPU */
	MOST_ASLEEP_MS = 4000, /* that is waited for, of all file systems */
	TELL_MS = 20,
	PACKET = 256,
};

/* Of the handles that name_to_handle_at(2) gives: fid types of include/linux/exportfs.h and of
 * fs/xfs/xfs_export.h, with which we make them ourselves. */
enum { INODE_32 = 1, XFS_INODE_64 = 0x81 };

union handle {
	struct file_handle head;
	unsigned char all[sizeof(struct file_handle) + sizeof(uint64_t) + sizeof(uint32_t)];
};

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

struct job {
	uint32_t device;
	int mount;
	unsigned long type; /* of file system */
	const struct wire_file *files;
	size_t n;
};

static bool is_of_mount(void *context, int fd, const char *link)
{
	const struct job *job = context;

	(void)link;
	return fd == job->mount;
}

/* A file that somebody has open still, and that has no name, can be opened: it is gone. */
static enum file_there_answer look(const struct job *job, const struct wire_file *file)
{
	union handle handle;
	struct stat found;
	bool is_known;
	int fd;

	if (!make_handle(&handle, job->type, file))
		return FILE_NOBODY_KNOWS;
	fd = open_by_handle_at(job->mount, &handle.head, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ESTALE ? FILE_IS_GONE : FILE_NOBODY_KNOWS;
	is_known = !fstat(fd, &found);
	close(fd);
	if (!is_known)
		return FILE_NOBODY_KNOWS;
	return found.st_nlink ? FILE_IS_THERE : FILE_IS_GONE;
}

static void send_or_end(int fd, const unsigned char *answers, size_t n)
{
	if (n && write(fd, answers, n) != (ssize_t)n)
		_exit(1);
}

/* Tells often, so that it is known to be at work, but not of each: both of us would wait for a CPU
 * each time. */
static void work(void *context, int fd)
{
	const struct job *job = context;
	unsigned char answers[PACKET];
	uint64_t told_ms = clock_ms();
	size_t n = 0;

	for (size_t i = 0; i < job->n; i++) {
		if (job->files[i].device != job->device)
			continue;
		answers[n++] = look(job, &job->files[i]);
		if (n < PACKET && clock_ms() - told_ms < TELL_MS)
			continue;
		send_or_end(fd, answers, n);
		told_ms = clock_ms();
		n = 0;
	}
	send_or_end(fd, answers, n);
}

static size_t next_of(const struct job *job, size_t i)
{
	while (i < job->n && job->files[i].device != job->device)
		i++;
	return i;
}

/* Takes answers, which come in the order of the files, until there are no more, or for too long. */
static void listen_to(struct file_there *f, const struct aside *child, const struct job *job,
		      enum file_there_answer *answers)
{
	unsigned char packet[PACKET];
	size_t i = next_of(job, 0);
	ssize_t n;

	while (i < job->n && f->asleep_ms < MOST_ASLEEP_MS) {
		struct aside_wait wait = {.asleep_ms = ANSWER_MS, .busy_ms = BUSY_MS};
		const bool answered = aside_wait(child, &wait);

		f->asleep_ms += wait.slept_ms;
		n = answered ? read(child->fd, packet, sizeof(packet)) : 0;
		if (n <= 0)
			return;
		for (ssize_t at = 0; at < n && i < job->n; at++, i = next_of(job, i + 1))
			answers[i] = packet[at];
	}
}

/* Where it was, another may be by now: of that, no file is ours. */
static bool is_still(struct job *job, uint64_t id)
{
	struct statfs fs;
	uint64_t found;

	if (fstatfs(job->mount, &fs))
		return false;
	job->type = (unsigned long)fs.f_type;
	memcpy(&found, &fs.f_fsid, sizeof(found));
	return found == id;
}

/* Tables of inodes are read from the disk, which may hang: it may be a server's. */
void file_there_ask(struct file_there *f, uint32_t device, uint64_t id,
		    const struct wire_file *files, enum file_there_answer *answers, size_t n)
{
	struct job job = {.device = device, .files = files, .n = n};
	struct aside child;

	if (next_of(&job, 0) == n)
		return;
	job.mount = file_system_open(device);
	if (job.mount < 0)
		return;
	if (is_still(&job, id) && !aside_begin(&child, work, is_of_mount, &job)) {
		listen_to(f, &child, &job, answers);
		aside_end(&child);
	}
	close(job.mount);
}
