/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/stack_mappings.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernel/content_aside.h"
#include "kernel/engine.h"
#include "kernel/procfs.h"
#include "kernel/procfs_aside.h"

enum { MOST_MAPPINGS = 16384 };

static bool note_file(void *context, const struct wire_mapping *m)
{
	struct stack_mappings *into = context;
	struct stack_mapping *list =
		array_reserve(into->list, into->n + 1, &into->room, sizeof(*list));

	into->memory = m->memory;
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
		.is_local = content_is_local(m->file_system),
	};
	return true;
}

/* ---- Names ------------------------------------------------------------------------------------
 */

static bool is_same(const struct stack_mapping *a, const struct stack_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->device == b->device && a->inode == b->inode && a->changed_ns == b->changed_ns;
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

static bool note_memory(void *context, const struct wire_mapping *m)
{
	*(uint64_t *)context = m->memory;
	return false;
}

static int tell_mappings(struct engine *e, pid_t pid, engine_mapping_fn tell, void *context)
{
	return e ? engine_tell_mappings(e, pid, 0, tell, context)
		 : procfs_aside_tell_mappings(pid, tell, context);
}

static uint64_t memory_of(struct engine *e, pid_t pid)
{
	uint64_t memory = 0;

	if (e)
		return engine_memory(e, pid);
	return procfs_aside_tell_mappings(pid, note_memory, &memory) ? 0 : memory;
}

int stack_mappings_read(struct engine *e, pid_t pid, uint64_t memory, struct stack_mappings *before,
			struct stack_mappings *into)
{
	int err;

	*into = (struct stack_mappings){.pid = pid, .is_others = !e};
	err = tell_mappings(e, pid, note_file, into);
	if (!err && into->memory != memory)
		return -ESRCH;
	if (!err)
		err = find_names(e, before, into);
	if (err)
		return err;
	/* It may have executed another program between the two. */
	return into->n && memory_of(e, pid) == memory ? 0 : -ESRCH;
}

int stack_mappings_open(const struct stack_mappings *m, size_t i, pid_t pid)
{
	const struct stack_mapping *mapping = &m->list[i];

	if (!mapping->is_local)
		return -EREMOTE;
	return m->is_others ? procfs_aside_open_mapping(pid, mapping->start, mapping->end)
			    : procfs_open_mapping(pid, mapping->start, mapping->end);
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
