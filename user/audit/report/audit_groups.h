/* SPDX-License-Identifier: GPL-2.0-only */
/* audit_groups.h - the processes of a machine by container and by user: sums of what they have. */
#ifndef QPROF_AUDIT_GROUPS_H
#define QPROF_AUDIT_GROUPS_H

#include "kernel/cgroups.h"
#include "model/machine.h"

enum { GROUP_NAME_MAX = CGROUP_CONTAINER_MAX };

struct audit_group {
	char name[GROUP_NAME_MAX]; /* the container's id, "" for what is in none; the user's name */
	char pod[CGROUP_POD_MAX];
	const char *runtime;
	uint32_t uid;	    /* of a user */
	uint64_t processes; /* there were, those that are not kept included */
	uint64_t alive, jobs;
	uint64_t rss;	       /* of those alive, now */
	uint64_t largest_peak; /* of one process */
	struct profile_usage usage;
};

enum audit_grouping { BY_CONTAINER, BY_USER };

/* Those with most memory first. To be freed; NULL when out of memory, or if there is none. */
struct audit_group *audit_groups(const struct machine *m, struct cgroups *cgroups,
				 enum audit_grouping by, size_t *n);

#endif
