/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * view_rows.h - the jobs and processes that a live view shows, in order, and their sums. Pure. It
 * sorts only what is asked for, so that 65,536 processes cost little.
 *
 * Use: view_rows_scan(), then each list at most once. The lists point into the machine: they are
 * valid until its next record.
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
	/* The same in the last second that was looked at. */
	VIEW_BY_CALLS_NOW,
	VIEW_BY_STORAGE_NOW,
	VIEW_BY_CPU_NOW,
	VIEW_SORTS,
};

struct view_wants {
	enum view_sort sort;
	/* Puts processes below their parents. The sibling whose branch has the highest process
	 * comes first. No effect while there is a filter. */
	bool tree;
	/* Keeps the processes that have this text in their command, user or container, or in the
	 * command or rule of their job, in upper or lower case. "": all. */
	const char *filter;
	/* Return names, for the filter. */
	const char *(*user)(void *context, uint32_t uid);
	const char *(*container)(void *context, uint64_t cgroup);
	void *context;
	uint32_t self; /* our tgid, which does not make the machine busy; 0: not known */
};

struct view_figures {
	uint64_t rss, peak;
	int64_t growth; /* of rss, since the machine_mark() before the last */
	struct profile_usage usage;
	struct machine_used per_second; /* 0 unless view_totals.rated */
	uint64_t hugetlb, gpu;
};

/* usage, per_second and growth are sums over the processes of its tree, the first two over ended
 * ones, too. */
struct view_job {
	const struct machine_job *job;
	struct view_figures figures;
};

/* A process that is alive. */
struct view_process {
	const struct profile_process *process;
	unsigned int depth; /* in the tree; 0 at a root, and without a tree */
	struct view_figures figures;
};

/* Of the whole machine; only the last two depend on the filter. */
struct view_totals {
	size_t alive, running_jobs, ended_jobs;
	uint64_t rss;		    /* of those alive */
	struct profile_usage usage; /* of all processes since the audit began */
	struct machine_used per_second;
	uint64_t hugetlb, gpu;
	bool rated;   /* there were two looks: what is used per second is known */
	bool busy;    /* some process uses so much that the next second may be another one */
	bool growing; /* some process has a growth other than 0 */
	size_t jobs, processes; /* in the whole lists */
};

struct view_rows;

/* Returns NULL when out of memory. */
struct view_rows *view_rows_new(void);
void view_rows_free(struct view_rows *v);

/* Looks at all jobs and processes. m and wants must outlive the lists. Returns 0, or -ENOMEM: there
 * are no lists. */
int view_rows_scan(struct view_rows *v, const struct machine *m, const struct view_wants *wants);
const struct view_totals *view_rows_totals(const struct view_rows *v);
/* Each writes at most max rows, from index first on. Returns how many. Jobs that run come first,
 * then jobs that have ended, the last one first. */
size_t view_rows_jobs(struct view_rows *v, size_t first, size_t max, struct view_job *jobs);
size_t view_rows_processes(struct view_rows *v, size_t first, size_t max,
			   struct view_process *processes);

#endif
