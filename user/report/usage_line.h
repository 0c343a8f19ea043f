/* SPDX-License-Identifier: GPL-2.0-only */
/* usage_line.h - what a run used, in one line: "Read 4.03 MiB (storage 256 MiB), ...". */
#ifndef QPROF_USAGE_LINE_H
#define QPROF_USAGE_LINE_H

#include "format/recording.h"

/* As much as all that a run may have used takes, some 50 bytes each. */
enum { USAGE_LINE_MAX = 4096 };

/* Writes the line into out (USAGE_LINE_MAX bytes) and returns it; empty if the run says nothing. */
char *usage_line(char *out, const struct recording_totals *totals);

#endif
