/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * svg_head.h - what stands above the panels of the picture: the command, the peak, how the run
 * ended, what it used, what the program reported.
 */
#ifndef QPROF_SVG_HEAD_H
#define QPROF_SVG_HEAD_H

#include "format/recording.h"

/* In pixels of the picture. */
enum {
	WIDTH = 960,
	MARGIN = 20,
	LETTER = 7, /* about the width of a letter */
};

/* Kinds of memory, from the bottom of the panel up: their class and their name. */
enum { ANON, SHMEM, FILES, UNSPLIT, N_KINDS };
struct svg_kind {
	const char *class, *name;
};
extern const struct svg_kind svg_kinds[N_KINDS];

enum { SVG_HEAD_LINES = 12, SVG_HEAD_TEXT = 1024 };
struct svg_head {
	struct {
		const char *class;
		char text[SVG_HEAD_TEXT];
	} lines[SVG_HEAD_LINES]; /* below the peak */
	size_t n;
};

/* Returns -1 when out of memory. */
int svg_head_make(struct svg_head *head, const struct recording *r);
double svg_head_height(const struct svg_head *head);
void svg_head_put(const struct svg_head *head, const struct recording *r, FILE *out);

/* Writes text, made safe for markup and cut to that many columns. */
void svg_text(FILE *out, double x, double y, const char *class, const char *text,
	      unsigned int columns);

#endif
