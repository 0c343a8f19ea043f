/* SPDX-License-Identifier: GPL-2.0-only */
/* file_system.h - where a file system is mounted, how much room it has, and of whose quota. */
#ifndef QPROF_FILE_SYSTEM_H
#define QPROF_FILE_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bpf/wire.h"
#include "kernel/patience.h"
#include "kernel/quota.h"

struct file_system_room {
	uint64_t size, left;	  /* bytes */
	struct quota user, group; /* of the owners of the files */
};

/* What is spent on asking, in ten seconds: patience's. */
enum { FILE_SYSTEM_MOST_MS = 400 };

/*
 * The file system of these files. as_root: what is kept for root is left, too. Who answers for it
 * may be anybody's program (FUSE): it is asked as long as there is patience with its device.
 * Returns false if none of our mounts shows it, or if it does not answer, or is not asked.
 */
bool file_system_of(const struct wire_written *written, bool as_root, struct patience *patience,
		    char *mount, size_t size, struct file_system_room *room);

/*
 * Finds the mount by the text of /proc/self/mountinfo. *is_local: it asks nobody else for an
 * answer. Returns false if there is none, or its path does not fit. Pure.
 */
bool file_system_find(FILE *mounts, uint32_t device, char *mount, size_t size, bool *is_local);

/* The number that the kernel has for a device (s_dev); stat(2)'s st_dev is written otherwise. */
uint32_t file_system_device(unsigned int major, unsigned int minor);

/* A path of a mountinfo has "\040" for a space, and so on. */
void file_system_unescape(char *path);

#endif
