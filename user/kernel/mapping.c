/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "kernel/file_system.h"
#include "kernel/pids.h"

static bool copy_mapping(void *context, const struct wire_mapping *m)
{
	*(struct wire_mapping *)context = *m;
	return false;
}

int mapping_identify(struct engine *e, int fd, struct wire_mapping *m)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	int err;

	*m = (struct wire_mapping){0};
	if (at == MAP_FAILED)
		return -errno;
	err = engine_tell_mappings(e, pids_self(), (uintptr_t)at, copy_mapping, m);
	munmap(at, page);
	return err ? err : m->file.inode ? 0 : -ENOENT;
}

static bool is_inode(const struct stat *st, const struct wire_file *file)
{
	return st->st_ino == file->inode &&
	       file_system_device(major(st->st_dev), minor(st->st_dev)) == file->device;
}

int mapping_reopened(struct engine *e, int fd, const struct stat *st,
		     const struct wire_mapping *mapped, struct wire_mapping *m)
{
	if (!is_inode(st, &mapped->file) || mapping_is_overlaid(fd))
		return mapping_identify(e, fd, m);
	*m = *mapped;
	return 0;
}

bool mapping_is_same(const struct wire_mapping *a, const struct wire_mapping *b)
{
	return !memcmp(&a->file, &b->file, sizeof(a->file));
}

bool mapping_is_still(struct engine *e, int fd, const struct wire_mapping *m)
{
	struct wire_mapping now;
	char link[64];
	int again, err;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	again = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (again < 0)
		return true;
	err = mapping_identify(e, again, &now);
	close(again);
	return err || mapping_is_same(&now, m);
}

bool mapping_is_overlaid(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}
