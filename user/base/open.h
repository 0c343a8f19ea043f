/* SPDX-License-Identifier: GPL-2.0-only */
/* open.h - output files, opened with root's rights on behalf of somebody else. */
#ifndef QPROF_OPEN_H
#define QPROF_OPEN_H

#include "base/error.h"

/*
 * Opens path for writing, emptied; "-" is a copy of stdout. A link in the last component is
 * refused: a user's directory could hold one to any file of root's. Under sudo the file becomes the
 * invoking user's. The descriptor, or -1 and *err.
 */
int output_open(const char *path, struct error *err);

#endif
