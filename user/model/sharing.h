/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sharing.h - how much of a tree's summed memory may be the same pages, counted again for each
 * process that maps them.
 *
 * Private pages come to a second process only by a fork. The kernel side says how many were given
 * (wire_point.inherited), so all others are there once. Shared memory comes to processes in many
 * ways, but what one process maps of it is there once: the tree has as much as the process that
 * maps the most. (A process may map one page twice; nobody tells us of that.)
 *
 * Example: a parent with 200 MiB forks four workers, which then take 60 MiB each. The sum is 200 +
 * 4 * 260 = 1240 MiB; 4 * 200 of these are inherited, so there are 440 MiB at least.
 */
#ifndef QPROF_SHARING_H
#define QPROF_SHARING_H

#include "model/processes.h"

/* The process that maps the most shared memory, as far as points tell. */
struct sharing {
	const struct process *most;
	uint64_t shmem; /* what it maps */
};

/*
 * Takes a point before the process's `holding` changes by it; the process is NULL if it is not
 * known. Returns the most shared memory that one process maps since.
 */
uint64_t sharing_point(struct sharing *s, const struct processes *ps, const struct process *process,
		       const struct wire_point *wire, uint64_t page_size);

/* Fills in what the point has more than once at most. inherited: as the kernel side counts it. */
void sharing_of_point(struct profile_point *point, uint64_t inherited, uint64_t largest_shmem);

/* Fills in the rest of a peak, when the tree and its largest parts in one process are known. */
void sharing_of_peak(struct profile_at_peak *at, uint64_t largest_file, uint64_t largest_rss);

/*
 * The same of the peak of a tree of which only totals are known: less all that was ever counted
 * more than once. Its first process was there, too.
 */
uint64_t sharing_least_of_totals(const struct profile_totals *totals);

/* Notes how many bytes several processes may count as theirs; inherited: of the tree at a point. */
void sharing_note(struct profile_totals *totals, const struct profile_point *point,
		  uint64_t inherited, uint32_t processes);
/* The kernel side saw the most that was shared between any two points, too. */
void sharing_note_most(struct profile_totals *totals, const struct wire_shared *most,
		       uint64_t page);

#endif
