/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * metrics_file.h - a file that others read at any moment: each time written anew beside itself, and
 * then renamed, so that a reader finds all of the old or all of the new one.
 */
#ifndef QPROF_METRICS_FILE_H
#define QPROF_METRICS_FILE_H

#include <stddef.h>

#include "base/error.h"

/* Whether it can be written, before anything is: 0, or -1 and *err. The file is left as it is. */
int metrics_file_check(const char *path, struct error *err);
/* Mode 0644. A link of that name is replaced, not followed. 0, or -errno: the file is as it was. */
int metrics_file_write(const char *path, const char *text, size_t len);

#endif
