/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * content_aside.h - searches a file that a process has mapped, by a child with a deadline: the file
 * system may not answer (FUSE, a file server), and then everything that is done with the file
 * hangs, even to close it.
 */
#ifndef QPROF_CONTENT_ASIDE_H
#define QPROF_CONTENT_ASIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/content.h"

/* Returns true if a file there is always answered for by this kernel, from memory or a disk. */
bool content_is_local(uint32_t file_system);

/*
 * As content_search(), or content_search_wishes() if wishes_alone, of the mapping m of process pid.
 * Returns 0; -ETIMEDOUT: no answer until the deadline; -EAGAIN: too many children hang; or -errno
 * as procfs_open_mapping(). After an error nothing of the file is attached.
 */
int content_search_aside(struct content *c, pid_t pid, const struct wire_mapping *m,
			 const char *path, uint64_t lists, bool wishes_alone, int deadline_ms);

#endif
