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
	uint64_t changed_ns;	/* a file may be written over where it is, as by cp(1) */
	uint64_t size;		/* of the file */
	char *path;
	bool is_local; /* to open it cannot hang */
};

struct stack_mappings {
	struct stack_mapping *list; /* by start */
	size_t n, room;
	pid_t pid;
	uint64_t memory; /* as in struct wire_stack */
	uint64_t closed; /* likewise, when it was read */
	bool is_others;	 /* it is read and opened as of a process that may want to hold us up */
};

/*
 * Reads the executable mappings of files. memory, closed: as in struct wire_stack. before: NULL, or
 * what was read of that memory before: gives the names of what has not changed, which are then gone
 * there. e: NULL if a child is to read them, with a deadline (procfs_aside.h). Returns 0, or
 * -errno. -ESRCH: the process is gone, or has executed another program since. -EAGAIN: it has
 * closed a library since, and there may be another in its place.
 */
int stack_mappings_read(struct engine *e, pid_t pid, uint64_t memory, uint64_t closed,
			struct stack_mappings *before, struct stack_mappings *into);
/* Opens the file of one of them. Returns -errno if that cannot be, or could hang; -ENOENT: it is
 * not mapped there any more. */
int stack_mappings_open(const struct stack_mappings *m, size_t i, pid_t pid);
void stack_mappings_free(struct stack_mappings *m);
/* Returns the same number for the same mappings and seed, and almost surely another for others. */
uint64_t stack_mappings_digest(const struct stack_mappings *m, uint64_t seed);

#endif
