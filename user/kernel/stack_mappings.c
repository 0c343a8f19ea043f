/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/stack_mappings.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "kernel/content_aside.h"
#include "kernel/engine.h"
#include "kernel/procfs.h"
#include "kernel/procfs_aside.h"

enum { MOST_MAPPINGS = 16384, MINOR_BITS = 20 /* of a device, in the kernel */ };

static bool note_file(void *context, const struct wire_mapping *m)
{
	struct stack_mappings *into = context;
	struct stack_mapping *list =
		array_reserve(into->list, into->n + 1, &into->room, sizeof(*list));

	into->memory = m->memory;
	into->closed = m->closed;
	if (!list || into->n == MOST_MAPPINGS)
		return false;
	into->list = list;
	list[into->n++] = (struct stack_mapping){
		.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.device = m->file.device,
		.inode = m->file.inode,
		.changed_ns = m->changed_ns,
		.size = m->size,
		.is_local = content_is_local(m->file_system),
	};
	return true;
}

/* ---- Names ------------------------------------------------------------------------------------
 */

/* A file that was written over meanwhile, or unlinked, keeps the name that it had. */
static bool is_same(const struct stack_mapping *a, const struct stack_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->device == b->device && a->inode == b->inode;
}

static void take_names(struct stack_mappings *into, struct stack_mappings *before)
{
	size_t at = 0;

	for (size_t i = 0; i < into->n && at < before->n; i++) {
		while (at < before->n && before->list[at].start < into->list[i].start)
			at++;
		if (at == before->n || !is_same(&into->list[i], &before->list[at]))
			continue;
		into->list[i].path = before->list[at].path;
		before->list[at].path = NULL;
	}
}

static int by_start(const void *key, const void *item)
{
	const uint64_t start = *(const uint64_t *)key;
	const struct stack_mapping *m = item;

	return start < m->start ? -1 : start > m->start;
}

static int note_name(void *context, const struct procfs_mapping *m)
{
	struct stack_mappings *into = context;
	struct stack_mapping *found = m && into->n ? bsearch(&m->start, into->list, into->n,
							     sizeof(*into->list), by_start)
						   : NULL;

	if (!found || found->path)
		return 0;
	found->path = strdup(m->path);
	return found->path ? 0 : -ENOMEM;
}

static int each_executable(struct engine *e, pid_t pid, procfs_visit_fn visit, void *context)
{
	return e ? procfs_each_executable(pid, visit, context)
		 : procfs_aside_each_executable(pid, visit, context);
}

/* One by one, for the few that a process has mapped since. Returns -errno if that may not be. */
static int read_names(struct stack_mappings *into)
{
	char path[PATH_MAX + 16]; /* " (deleted)" */

	for (size_t i = 0; i < into->n; i++) {
		struct stack_mapping *m = &into->list[i];
		const ssize_t n = m->path ? 0
					  : procfs_mapping_path(into->pid, m->start, m->end, path,
								sizeof(path));

		if (n == -EPERM || n == -EACCES)
			return (int)n;
		if (!m->path && n >= 0)
			m->path = strdup(path);
	}
	return 0;
}

/* A mapping that is not there any more is no mapping. */
static void drop_unknown(struct stack_mappings *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++)
		if (m->list[i].path)
			m->list[kept++] = m->list[i];
	m->n = kept;
}

static int find_names(struct engine *e, struct stack_mappings *before, struct stack_mappings *into)
{
	int err = -EPERM;

	if (e && before && before->n) {
		take_names(into, before);
		err = read_names(into);
	}
	if (err)
		err = each_executable(e, into->pid, note_name, into);
	drop_unknown(into);
	return err;
}

/* ---- All of it --------------------------------------------------------------------------------
 */

static bool note_first(void *context, const struct wire_mapping *m)
{
	*(struct wire_mapping *)context = *m;
	return false;
}

static int tell_mappings(struct engine *e, pid_t pid, engine_mapping_fn tell, void *context)
{
	return e ? engine_tell_mappings(e, pid, 0, tell, context)
		 : procfs_aside_tell_mappings(pid, tell, context);
}

/* Returns 0 if all is still of these mappings, or -errno as stack_mappings_read() does. */
static int check(struct engine *e, const struct stack_mappings *m)
{
	struct wire_mapping first = {.memory = 0};

	if (e)
		engine_first_mapping(e, m->pid, &first);
	else
		procfs_aside_tell_mappings(m->pid, note_first, &first);
	if (!m->n || first.memory != m->memory)
		return -ESRCH;
	return first.closed == m->closed ? 0 : -EAGAIN;
}

int stack_mappings_read(struct engine *e, pid_t pid, uint64_t memory, uint64_t closed,
			struct stack_mappings *before, struct stack_mappings *into)
{
	int err;

	*into = (struct stack_mappings){.pid = pid, .is_others = !e};
	err = tell_mappings(e, pid, note_file, into);
	if (!err && into->memory != memory)
		return -ESRCH;
	if (!err && into->closed != closed)
		return -EAGAIN;
	if (!err)
		err = find_names(e, before, into);
	/* It may have executed another program between the two, or have closed a library. */
	return err ? err : check(e, into);
}

/* Returns false if another file is mapped there by now. To stat(2) an overlay mount is another
 * device, and has inodes of its own. */
static bool is_file_of(const struct stack_mapping *m, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	return (uint64_t)st.st_size == m->size &&
	       (gnu_dev_major(st.st_dev) != m->device >> MINOR_BITS ||
		gnu_dev_minor(st.st_dev) != (m->device & ((1u << MINOR_BITS) - 1)) ||
		st.st_ino == m->inode);
}

int stack_mappings_open(const struct stack_mappings *m, size_t i, pid_t pid)
{
	const struct stack_mapping *mapping = &m->list[i];
	int fd;

	if (!mapping->is_local)
		return -EREMOTE;
	fd = m->is_others ? procfs_aside_open_mapping(pid, mapping->start, mapping->end)
			  : procfs_open_mapping(pid, mapping->start, mapping->end);
	if (fd < 0 || is_file_of(mapping, fd))
		return fd;
	close(fd);
	return -ENOENT;
}

void stack_mappings_free(struct stack_mappings *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->list[i].path);
	free(m->list);
	*m = (struct stack_mappings){.n = 0};
}

static uint64_t mix(uint64_t digest, uint64_t word)
{
	digest = (digest ^ word) * 0x9e3779b97f4a7c15ull;
	return digest ^ digest >> 29;
}

uint64_t stack_mappings_digest(const struct stack_mappings *m, uint64_t seed)
{
	uint64_t digest = mix(seed, m->n);

	for (size_t i = 0; i < m->n; i++) {
		digest = mix(digest, m->list[i].start);
		digest = mix(digest, m->list[i].end);
		digest = mix(digest, m->list[i].offset);
		digest = mix(digest, m->list[i].device);
		digest = mix(digest, m->list[i].inode);
		digest = mix(digest, m->list[i].changed_ns);
	}
	return digest;
}
