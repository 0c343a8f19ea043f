/* SPDX-License-Identifier: GPL-2.0-only */
/* summary.h - the table at the end of a run, for people: totals, phases, processes. */
#ifndef QPROF_SUMMARY_H
#define QPROF_SUMMARY_H

#include <stdbool.h>

#include "format/run_info.h"
#include "model/profile.h"

/* Writes the table to fd. width is the columns that there are; colour: escapes are wanted. Returns
 * 0 or -errno. */
int summary_write(const struct profile *p, const struct run_quality *quality, int fd,
		  unsigned int width, bool colour);

#endif
