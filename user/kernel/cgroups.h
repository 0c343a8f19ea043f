/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cgroups.h - from the id of a cgroup to its path, and from the path to the container and the pod
 * that it is of, as container runtimes name them.
 */
#ifndef QPROF_CGROUPS_H
#define QPROF_CGROUPS_H

#include <stdint.h>

enum { CGROUP_CONTAINER_MAX = 128, CGROUP_POD_MAX = 48, CGROUP_PATH_MAX = 512 };

/* Texts are empty where there is none; they are printable ASCII but for path, which may be no
 * UTF-8. */
struct cgroup {
	char path[CGROUP_PATH_MAX]; /* in the hierarchy, "/..."; cut at its front: "..." */
	char container[CGROUP_CONTAINER_MAX]; /* id of it, or name (systemd-nspawn, LXC) */
	char pod[CGROUP_POD_MAX];	      /* UID of the Kubernetes pod */
	const char *runtime; /* "docker", "containerd", "cri-o", "podman", "systemd-nspawn", "lxc",
				or "" */
};

/* What a path says; the path is hostile. Pure. */
void cgroup_parse(const char *path, struct cgroup *out);

struct cgroups;

/* NULL when out of memory. Without a cgroup2 hierarchy all are unknown. */
struct cgroups *cgroups_new(void);
void cgroups_free(struct cgroups *c);
/*
 * That of an id, resolved once: then it is known also when it is gone. Never NULL: one that cannot
 * be resolved has an empty path. Valid until the next call.
 */
const struct cgroup *cgroups_get(struct cgroups *c, uint64_t id);

#endif
