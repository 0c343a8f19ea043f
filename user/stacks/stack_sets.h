/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stack_sets.h - the sets of mappings that a child unwinds by. Processes with the same mappings
 * share one; and a process that maps more code, as one that loads libraries does, goes on with the
 * set that it had, which gets the rest: to begin another would have all files of it looked at anew.
 *
 * Example: python3 has mapped 7 files, and imports numpy. Its set gets the 5 files that are new. A
 * child that was forked before has a set of its own from then on, for it may have code of a JIT
 * where one of the 5 is. If python3 unmaps one of the 12 and maps another there, that is another
 * set, too.
 */
#ifndef QPROF_STACK_SETS_H
#define QPROF_STACK_SETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/unwind.h"

struct stack_mappings;

enum { STACK_SETS_RECENT = 8 }; /* that may get more */

/* What a set has, as far as it tells mappings apart. */
struct stack_set_part {
	uint64_t start, end, offset, device, inode, changed_ns;
};

struct stack_set_recent {
	struct stack_set_part *parts; /* by start; NULL: none */
	size_t n;
	uint64_t seed;
	uint32_t set;
};

/* All zero at first. */
struct stack_sets {
	uint32_t n;			   /* sets */
	uint64_t digests[UNWIND_MAX_SETS]; /* of what each has; 0: it is for one sample */
	struct stack_set_recent recent[STACK_SETS_RECENT];
	size_t next_recent;
};

/* Forgets all: another child takes over. */
void stack_sets_end(struct stack_sets *s);

/*
 * Finds the set of a process's mappings, or tells the child of it. seed: of digests; sets are not
 * shared between seeds. Returns UNWIND_WHOLE and *set, or how stacks end without one.
 * *lacks_files: NULL; or set to whether a file could not be opened that could be opened later: then
 * the set is for one sample.
 */
enum unwind_end stack_sets_of(struct stack_sets *s, struct unwinder *u, pid_t pid,
			      const struct stack_mappings *m, uint64_t seed, uint32_t *set,
			      bool *lacks_files);

#endif
