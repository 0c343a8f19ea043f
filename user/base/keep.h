/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * keep.h - a file of measurements does not replace the one before it: that becomes "q.yaml.old", as
 * perf.data does. If the measurement does not begin, both names have what they had.
 *
 *   before           opened           begun              or undone
 *   q.yaml      A    q.yaml      -    q.yaml      new    q.yaml      A
 *   q.yaml.old  B    q.yaml.old  A    q.yaml.old  A      q.yaml.old  B
 *                    q.yaml.old~ B
 */
#ifndef QPROF_KEEP_H
#define QPROF_KEEP_H

#include <stdbool.h>

#include "base/error.h"

struct keep {
	const char *path;
	char *old;   /* "q.yaml.old" */
	bool moved;  /* what was at path is there now; false: there was nothing to keep */
	char *older; /* "q.yaml.old~", where that name's file is; NULL: there was none */
	bool begun;
};

/*
 * Opens path as output_open() does, after the regular file there was renamed, unless that is empty.
 * Returns a descriptor, or -1 and *err. path must outlive k. keep_close() must follow.
 */
int keep_open(struct keep *k, const char *path, struct error *err);
/* The measurement has begun. May be called again. */
void keep_begun(struct keep *k);
/* Undoes all if the measurement has not begun. k may be zeros. */
void keep_close(struct keep *k);

#endif
