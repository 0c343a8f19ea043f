/* SPDX-License-Identifier: GPL-2.0-only */
/* audit_groups.h - sums of the processes of a machine by container and by user. */
#ifndef QPROF_AUDIT_GROUPS_H
#define QPROF_AUDIT_GROUPS_H

#include "audit/report/audit_report.h"

enum { GROUP_NAME_MAX = CGROUP_CONTAINER_MAX };

struct audit_group {
	char name[GROUP_NAME_MAX]; /* of the container, "" for no container; or of the user */
	char pod[CGROUP_POD_MAX];
	const char *runtime;
	uint32_t uid;	    /* of a user */
	uint64_t processes; /* since the audit began, forgotten ones, too */
	uint64_t alive, jobs;
	uint64_t rss;	       /* of processes that are alive */
	uint64_t largest_peak; /* of one process */
	struct profile_usage usage;
};

enum audit_grouping { BY_CONTAINER, BY_USER };

/* Returns the groups, most memory first, to be freed; or NULL when out of memory. */
struct audit_group *audit_groups(const struct audit_report *report, enum audit_grouping by,
				 size_t *n);

#endif
