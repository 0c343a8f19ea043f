/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * view_rows.h - which jobs and processes of a machine a live view shows, in which order, and their
 * sums. Pure; only as much is sorted as is asked for, so that 65,536 processes are no matter.
 *
 * Use: view_rows_scan, then each list at most once, from where it is scrolled to. The lists point
 * into the machine: they are valid until its next record.
 */
#ifndef QPROF_VIEW_ROWS_H
#define QPROF_VIEW_ROWS_H

#include "model/machine.h"

/* The highest first. */
enum view_sort {
	VIEW_BY_RSS,
	VIEW_BY_GROWTH,
	VIEW_BY_PEAK,
	VIEW_BY_CALLS,	 /* bytes read and written through calls */
	VIEW_BY_STORAGE, /* bytes from and to storage */
	VIEW_BY_CPU,
	VIEW_SORTS,
};

struct view_wants {
	enum view_sort sort;
	/* Processes below their parents; of siblings, whoever is or has below it the highest comes
	 * first. Without effect while there is a filter. */
	bool tree;
	/* Only those that have it in their command, user, container, or in the command or rule of
	 * their job; upper and lower case are the same. "": all. */
	const char *filter;
	/* For the filter. */
	const char *(*user)(void *context, uint32_t uid);
	const char *(*container)(void *context, uint64_t cgroup);
	void *context;
};

struct view_figures {
	uint64_t rss, peak;
	int64_t growth; /* of rss, since the last but one machine_mark() */
	struct profile_usage usage;
};

/* Its tree, those that have ended included: usage and growth are sums over its processes. */
struct view_job {
	const struct machine_job *job;
	struct view_figures figures;
};

/* One that is alive. */
struct view_process {
	const struct profile_process *process;
	unsigned int depth; /* in the tree; 0: at its root, or there is none */
	struct view_figures figures;
};

/* Of the whole machine, whatever the filter is, but for the last two. */
struct view_totals {
	size_t alive, running_jobs, ended_jobs;
	uint64_t rss;		    /* of those alive */
	struct profile_usage usage; /* of all that there were */
	bool growing;		    /* the growth of some process is not 0 */
	size_t jobs, processes;	    /* that the lists have in all */
};

struct view_rows;

/* NULL when out of memory. */
struct view_rows *view_rows_new(void);
void view_rows_free(struct view_rows *v);

/* Looks at all of them. 0, or -ENOMEM: there are no lists. wants and m must outlive the lists. */
int view_rows_scan(struct view_rows *v, const struct machine *m, const struct view_wants *wants);
const struct view_totals *view_rows_totals(const struct view_rows *v);
/* From the one at index first on, at most max: how many. Those that run come before those that have
 * ended, which are in no other order than that: the last one first. */
size_t view_rows_jobs(struct view_rows *v, size_t first, size_t max, struct view_job *jobs);
size_t view_rows_processes(struct view_rows *v, size_t first, size_t max,
			   struct view_process *processes);

#endif
