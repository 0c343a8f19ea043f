/* SPDX-License-Identifier: GPL-2.0-only */
/* stack_mappings.h - the code that a process has mapped: what stacks are unwound by. */
#ifndef QPROF_STACK_MAPPINGS_H
#define QPROF_STACK_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct engine;

struct stack_mapping {
	uint64_t start, end, offset;
	uint64_t device, inode; /* as the kernel means them, not an overlay mount */
	char *path;
	bool is_local; /* to open it cannot hang */
};

struct stack_mappings {
	struct stack_mapping *list;
	size_t n, room;
	uint64_t memory; /* as in struct wire_stack */
};

/*
 * Reads the executable mappings of files. memory: as in struct wire_stack. Returns 0, or -errno.
 * -ESRCH: the process is gone, or has executed another program since.
 */
int stack_mappings_read(struct engine *e, pid_t pid, uint64_t memory, struct stack_mappings *into);
void stack_mappings_free(struct stack_mappings *m);
/* Returns the same number for the same mappings, and almost surely another for others. */
uint64_t stack_mappings_digest(const struct stack_mappings *m);

#endif
