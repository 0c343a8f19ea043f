/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/stack_mappings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernel/content_aside.h"
#include "kernel/engine.h"
#include "kernel/procfs.h"
#include "kernel/procfs_aside.h"

enum { MOST_MAPPINGS = 16384 };

/* What the kernel says of files; /proc says where in them a mapping begins. */
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
		.device = m->file.device,
		.inode = m->file.inode,
		.is_local = content_is_local(m->file_system),
	};
	return true;
}

static int by_start(const void *key, const void *item)
{
	const uint64_t start = *(const uint64_t *)key;
	const struct stack_mapping *m = item;

	return start < m->start ? -1 : start > m->start;
}

static int note_offset(void *context, const struct procfs_mapping *m)
{
	struct stack_mappings *into = context;
	struct stack_mapping *found = m && into->n ? bsearch(&m->start, into->list, into->n,
							     sizeof(*into->list), by_start)
						   : NULL;

	if (!found || found->path)
		return 0;
	found->offset = m->offset;
	found->path = strdup(m->path);
	return found->path ? 0 : -ENOMEM;
}

/* A mapping that was there in one of both alone is no mapping. */
static void drop_unknown(struct stack_mappings *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++)
		if (m->list[i].path)
			m->list[kept++] = m->list[i];
	m->n = kept;
}

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

static int each_executable(struct engine *e, pid_t pid, procfs_visit_fn visit, void *context)
{
	return e ? procfs_each_executable(pid, visit, context)
		 : procfs_aside_each_executable(pid, visit, context);
}

int stack_mappings_read(struct engine *e, pid_t pid, uint64_t memory, struct stack_mappings *into)
{
	uint64_t after = 0;
	int err;

	*into = (struct stack_mappings){.is_others = !e};
	err = tell_mappings(e, pid, note_file, into);
	if (!err && into->memory != memory)
		return -ESRCH;
	if (!err)
		err = each_executable(e, pid, note_offset, into);
	drop_unknown(into);
	if (!err) /* it may have executed another program between the two */
		err = tell_mappings(e, pid, note_memory, &after);
	return err ? err : into->n && after == memory ? 0 : -ESRCH;
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
	}
	return digest;
}
