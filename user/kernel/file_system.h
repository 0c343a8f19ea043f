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
	uint64_t id;		  /* its own, as far as it has one: another may get its device */
	struct quota user, group; /* of the owners of the files */
};

enum {
	FILE_SYSTEM_MOST_MS = 400,   /* spent on asking, in ten seconds: patience's */
	FILE_SYSTEM_ANSWER_MS = 200, /* what does not answer within it is not asked for a while */
};

/*
 * The file system of these files. as_root: what is kept for root is left, too. Who answers for it
 * may be anybody's program (FUSE): it is asked as long as there is patience with its device.
 * Returns false if none of our mounts shows it, or if it does not answer, or is not asked.
 */
bool file_system_of(const struct wire_written *written, bool as_root, struct patience *patience,
		    char *mount, size_t size, struct file_system_room *room);

enum file_system_answer {
	FILE_SYSTEM_UNKNOWN,
	FILE_SYSTEM_KNOWN,
	FILE_SYSTEM_NOT_ASKED, /* so much was spent on asking that it has to wait */
};

/* The same of a file system, without quotas; left is what users may have. *took_ns: our CPU time,
 * or how long it took if we waited for an answer. */
enum file_system_answer file_system_space(uint32_t device, struct patience *patience, char *mount,
					  size_t size, struct file_system_room *room,
					  uint64_t *took_ns);

/*
 * Finds the next mount of it in the text of /proc/self/mountinfo, from where that was read to. *id
 * is the mount's own: another may cover it at that path. Returns false if there is none whose path
 * fits. Pure.
 */
bool file_system_find(FILE *mounts, uint32_t device, unsigned int *id, char *mount, size_t size);

/*
 * Whether the way to a mount from the root, and the mount, are of file systems that answer by
 * themselves: neither a server nor a program does. mounts: all of that text. Pure.
 */
bool file_system_is_near(FILE *mounts, const char *mount);

/* Whether the mount of that id in the text of a mountinfo is of such a file system. Pure. */
bool file_system_of_mount_answers(FILE *mounts, unsigned int id);

/* Opens the directory where it is mounted, if the way to it is near. Returns a descriptor, or -1.
 */
int file_system_open(uint32_t device);

/* The number that the kernel has for a device (s_dev); stat(2)'s st_dev is written otherwise. */
uint32_t file_system_device(unsigned int major, unsigned int minor);

/* A path of a mountinfo has "\040" for a space, and so on. */
void file_system_unescape(char *path);

#endif
