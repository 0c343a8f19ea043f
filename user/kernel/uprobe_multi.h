/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * uprobe_multi.h - one link that attaches a program to many places of a file.
 *
 * Linux has it from 6.6 on (89ae89f53d20 "bpf: Add multi uprobe link"). It detaches all places
 * after one grace period; separate links take one each. libbpf 1.1 does not know it.
 */
#ifndef QPROF_UPROBE_MULTI_H
#define QPROF_UPROBE_MULTI_H

#include <stdbool.h>
#include <stdint.h>

/* The attach type with which such a program is loaded; include/uapi/linux/bpf.h. */
enum { TRACE_UPROBE_MULTI = 48 };

/*
 * Attaches a program to n places of the file at path. semaphores and cookies may be NULL. returns:
 * at the return of the functions that begin there. Returns the link's descriptor, or -errno.
 */
int uprobe_multi_link(int program, const char *path, const uint64_t *offsets,
		      const uint64_t *semaphores, const uint64_t *cookies, uint32_t n,
		      bool returns);

#endif
