/* SPDX-License-Identifier: GPL-2.0-only */
/* summary.h - the table at the end of a run, for people: totals, phases, processes. */
#ifndef QPROF_SUMMARY_H
#define QPROF_SUMMARY_H

#include <stdbool.h>

#include "format/run_info.h"
#include "model/profile.h"

struct summary_page {
	const struct run_info *info;
	unsigned int width;  /* columns that there are */
	bool colour;	     /* escapes are wanted */
	bool after_others;   /* what a program wrote last may not have ended its line */
	const char *profile; /* the file that was written; NULL: none to name */
	const char *old;     /* where the file is that had that name; NULL: there was none */
};

/* Writes the table to fd. Returns 0 or -errno. */
int summary_write(const struct profile *p, const struct run_quality *quality, int fd,
		  const struct summary_page *page);

#endif
