/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cgroups.h - from the id of a cgroup to its path, and from the path to its container and pod, by
 * the names that container runtimes give.
 *
 * Example: "/system.slice/docker-<64 hex digits>.scope" is a container of docker with that id.
 */
#ifndef QPROF_CGROUPS_H
#define QPROF_CGROUPS_H

#include <stdint.h>

enum { CGROUP_CONTAINER_MAX = 128, CGROUP_POD_MAX = 48, CGROUP_PATH_MAX = 512 };

/* "" stands for none. All are printable ASCII, but path may be no UTF-8. */
struct cgroup {
	char path[CGROUP_PATH_MAX]; /* in the hierarchy: "/..."; "..." if its front is cut */
	char container[CGROUP_CONTAINER_MAX]; /* its id, or its name (systemd-nspawn, LXC) */
	char pod[CGROUP_POD_MAX];	      /* UID of the Kubernetes pod */
	const char *runtime; /* docker, containerd, cri-o, podman, systemd-nspawn, lxc, or "" */
};

/* Fills in what a path says. The path may be hostile. Pure. */
void cgroup_parse(const char *path, struct cgroup *out);

struct cgroups;

/* Returns NULL when out of memory. Without a cgroup2 hierarchy all cgroups are unknown. */
struct cgroups *cgroups_new(void);
void cgroups_free(struct cgroups *c);
/*
 * Returns the cgroup with an id, valid until the next call. It is looked up once, and then known
 * even when it is gone. Never NULL: an unknown cgroup has an empty path.
 */
const struct cgroup *cgroups_get(struct cgroups *c, uint64_t id);

#endif
