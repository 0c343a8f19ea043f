/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * content_aside.h - searches a file by a child with a deadline: the file system may not answer
 * (FUSE, a file server), and then everything that is done with the file hangs, even to close it; or
 * whoever made the file may have made it to be as much work as possible.
 */
#ifndef QPROF_CONTENT_ASIDE_H
#define QPROF_CONTENT_ASIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/aside.h"
#include "kernel/content.h"

/* Returns true if a file there is always answered for by this kernel, from memory or a disk. */
bool content_is_local(uint32_t file_system);

/* A file, by a descriptor or as what a process has mapped. */
struct content_file {
	int fd; /* -1: the child opens the mapping */
	pid_t pid;
	const struct wire_mapping *mapping;
	const char *path; /* to be shown */
};

/* How much the search of it may take. */
struct content_bounds {
	struct aside_wait wait;
	unsigned int attach_ms; /* as content's until_ms; 0: as long as it takes */
	uint64_t bytes;		/* as elf_allow() */
};

/*
 * As content_search(), or content_search_wishes() if wishes_alone. Returns 0; -ETIMEDOUT: it took
 * too long; -EAGAIN: too many children hang; -EACCES: the places are of a job whose user may not
 * read the file; or -errno as procfs_open_mapping(). After an error
 * something of the file may be attached, by us or by c->child until that has ended. *bounds: wait
 * says how long it was waited for.
 */
int content_search_aside(struct content *c, const struct content_file *file, uint64_t lists,
			 bool wishes_alone, struct content_bounds *bounds);

/* Returns how much CPU time that has taken children so far. */
uint64_t content_aside_cpu_ns(void);

#endif
