/* SPDX-License-Identifier: GPL-2.0-only */
/* markup.h - text that programs chose, in HTML and SVG. */
#ifndef QPROF_MARKUP_H
#define QPROF_MARKUP_H

#include <stdio.h>

#include "format/recording.h"

enum { MARKUP_MAX_COLUMNS = 1024 };

/*
 * Writes text so that it may stand between tags or in a quoted attribute, cut to that many columns
 * (at most MARKUP_MAX_COLUMNS). Leaves out what turns the direction of text or is no XML.
 */
void markup_text(FILE *out, const char *text, unsigned int columns);

/* Writes "at 369 ms, in Calibration" of the overall peak. The name has so many columns at most. */
void markup_peak_time(FILE *out, const struct recording *r, unsigned int columns);

#endif
