/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * metrics_file.h - a file that others may read at any moment. Each version is written beside it and
 * then renamed, so that a reader finds all of the old text or all of the new.
 */
#ifndef QPROF_METRICS_FILE_H
#define QPROF_METRICS_FILE_H

#include <stddef.h>

#include "base/error.h"

/* Checks that the file can be written, and leaves it as it is. Returns 0, or -1 and *err. */
int metrics_file_check(const char *path, struct error *err);
/* Writes the file with mode 0644, in place of a link if there is one. Returns 0; or -errno: the
 * file is as it was. */
int metrics_file_write(const char *path, const char *text, size_t len);

#endif
