/* SPDX-License-Identifier: GPL-2.0-only */
/* markup.h - texts of programs in HTML and SVG. */
#ifndef QPROF_MARKUP_H
#define QPROF_MARKUP_H

#include <stdio.h>

enum { MARKUP_MAX_COLUMNS = 1024 };

/*
 * Text as content or within a quoted attribute, at most columns (up to MARKUP_MAX_COLUMNS) wide,
 * without what would turn its direction or is not allowed in XML.
 */
void markup_text(FILE *out, const char *text, unsigned int columns);

#endif
