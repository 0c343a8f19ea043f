/* SPDX-License-Identifier: GPL-2.0-only */
/* markup.h - text that programs chose, in HTML and SVG. */
#ifndef QPROF_MARKUP_H
#define QPROF_MARKUP_H

#include <stdio.h>

enum { MARKUP_MAX_COLUMNS = 1024 };

/*
 * Writes text so that it may stand between tags or in a quoted attribute, cut to that many columns
 * (at most MARKUP_MAX_COLUMNS). Leaves out what turns the direction of text or is no XML.
 */
void markup_text(FILE *out, const char *text, unsigned int columns);

#endif
