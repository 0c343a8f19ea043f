/* SPDX-License-Identifier: GPL-2.0-only */
/* cold.h - files leave the page cache before a run, so that it reads them from storage. */
#ifndef QPROF_BENCH_COLD_H
#define QPROF_BENCH_COLD_H

#include <stdint.h>

#include "base/error.h"

/*
 * Writes back a file, or each file of a folder, and has the kernel drop its pages: fdatasync(2) and
 * posix_fadvise(2). Nothing else on the machine leaves the cache, and no privilege is needed. Files
 * are opened with the rights of who called sudo. Adds to *left the bytes that stayed: what others
 * have mapped or locked. Returns 0, or -1 and *err.
 */
int cold_make(const char *path, uint64_t *left, struct error *err);

#endif
