/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * copies.h - looks at pages of files in memory, and which of them tell of the end of a phase.
 *
 * A look comes a little after the end of the phase that it is for. It tells of that end if nothing
 * has joined or left the tree in between, and until the look was over: who is gone by then had
 * copies that nobody counted, and a child has its parent's once more.
 */
#ifndef QPROF_MODEL_COPIES_H
#define QPROF_MODEL_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COPIES_MAX_TIMES = 262144, COPIES_NO_LOOK = -1 };

struct copies {
	struct copies_seen {
		uint64_t began_ns, ended_ns;
		uint64_t age_ns;     /* the most between an end that it tells of and its begin */
		bool mapped_unknown; /* it tells of copies alone */
	} * looks;		     /* in order of time */
	size_t n, cap;
	uint64_t *changes; /* when processes began, executed, and ended */
	size_t n_changes, changes_cap;
	uint64_t unknown_ns; /* from then on nobody knows of changes; 0: they are all known */
	bool is_sorted;
};

/* Something has joined or left the tree, or has other memory now. */
void copies_changed(struct copies *copies, uint64_t time_ns);
/* Adds a look, which is later than all before. Returns its number, or -ENOMEM. */
int copies_seen(struct copies *copies, const struct copies_seen *look);
/* Returns the number of the look that tells of a phase's end, or COPIES_NO_LOOK. */
int copies_find(struct copies *copies, uint64_t end_ns);
void copies_free(struct copies *copies);

#endif
