/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mount_paths.h - where a process finds a file, by its path within the file system. What namespaces
 * of mounts have is kept for a while: processes that are gone had mounts, too.
 */
#ifndef QPROF_MOUNT_PATHS_H
#define QPROF_MOUNT_PATHS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct mount_list {
	struct mount {
		uint32_t device; /* as the kernel numbers it (s_dev) */
		char *root;	 /* the part of the file system that it shows */
		char *point;	 /* where */
	} * list;
	size_t n, cap;
	size_t bytes; /* of texts */
	size_t most;  /* of these; 0: as many as there are */
};

/* Takes the text of a mountinfo. Returns 0; -ENOMEM; or -E2BIG: it has more than `most`.
 * mount_list_free() it in any case. Pure. */
int mount_list_read(struct mount_list *mounts, FILE *mountinfo);
void mount_list_free(struct mount_list *mounts);

/*
 * Returns where a file is: of several mounts, by the one of the smallest part of it. NULL if none
 * shows it. The caller frees it. Example: /data shows /srv of the file system, so its /srv/a/b is
 * /data/a/b.
 */
char *mount_list_find(const struct mount_list *mounts, uint32_t device, const char *within);

enum { MOUNT_NAMESPACES = 16 }; /* that are kept; of more, the one longest unused is read again */

/* Zeroed: nothing is known. */
struct mount_paths {
	struct mount_namespace {
		uint32_t number;
		uint64_t due_ns; /* before that it is not read again */
		uint64_t used;	 /* number of the use */
		struct mount_list mounts;
	} known[MOUNT_NAMESPACES];
	uint64_t uses;
	size_t most; /* bytes of the texts of all lists; 0: as many as there are */
};

/*
 * The same by the mounts of a namespace, which that process was in, or else by ours. A list is read
 * anew each time, but for a while after a reading: 20 times what that took.
 */
char *mount_paths_find(struct mount_paths *paths, uint32_t tgid, uint32_t number, uint32_t device,
		       const char *within);
/* The same, and never by ours. */
char *mount_paths_find_there(struct mount_paths *paths, uint32_t tgid, uint32_t number,
			     uint32_t device, const char *within);
void mount_paths_free(struct mount_paths *paths);

#endif
