/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * renderer.h - what every format of `qprof-bpf report` implements: one function, from a recording
 * to a file. A format is a file of its own with `const struct renderer renderer_NAME` and a line in
 * formats.c.
 */
#ifndef QPROF_RENDERER_H
#define QPROF_RENDERER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "format/recording.h"

/* What phases and processes are put in order by; each but REPORT_BY_TIME the largest first. */
enum report_order {
	REPORT_BY_TIME, /* as they began */
	REPORT_BY_PEAK,
	REPORT_BY_DELTA,
	REPORT_BY_DURATION,
	REPORT_BY_READ,
	REPORT_BY_WRITE,
	REPORT_BY_CPU,
};

/* A format takes what it has a use for. */
struct render_options {
	const char *source; /* where the profile is from, to be shown; may be no UTF-8 */
	const char *phase;  /* only phases whose name it matches (fnmatch); NULL: all */
	unsigned int table; /* of csv: its index, see csv_table() */
	unsigned int width; /* columns, at least 60 */
	unsigned int top;   /* phases, and processes, that are shown at most; 0: all */
	enum report_order order;
	bool colour;
};

struct renderer {
	const char *name;      /* of -f */
	const char *extension; /* of a file that is in this format, with its dot; NULL: none */
	const char *what;      /* one line for --help */
	bool binary;	       /* nothing for a terminal */
	/*
	 * Writes all of it. That a write failed is found by the caller at the file's end; a
	 * renderer need not look. 0, or -1 and *err: what cannot be rendered, and why.
	 */
	int (*render)(const struct recording *r, const struct render_options *options, FILE *out,
		      struct error *err);
};

/* Ended by NULL; the first is the default. */
extern const struct renderer *const renderers[];

/* By the end of a file's name; NULL: it does not tell. */
const struct renderer *renderer_for_file(const char *path);

/* Returns the name of csv's table at index i, or NULL; the first is the default. */
const char *csv_table(size_t i);

/* Whether options->phase lets this one through. */
bool render_wants_phase(const struct render_options *options, const struct recording_phase *phase);

#endif
