/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * renderer.h - what every format of `qprof-bpf report` implements: a function that writes a
 * recording to a file. A format is a .c file with `const struct renderer renderer_NAME` and a line
 * in formats.c.
 */
#ifndef QPROF_RENDERER_H
#define QPROF_RENDERER_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "format/recording.h"

/* How phases and processes are sorted: by time, or the largest first. */
enum report_order {
	REPORT_BY_TIME, /* phases as they began; processes by their peaks */
	REPORT_BY_PEAK,
	REPORT_BY_DELTA,
	REPORT_BY_DURATION,
	REPORT_BY_READ,
	REPORT_BY_WRITE,
	REPORT_BY_CPU,
};

/* A format uses the options that it has a use for. */
struct render_options {
	const char *source; /* the name of the profile's file, to be shown; may be no UTF-8 */
	const char *phase;  /* only phases whose names match this pattern (fnmatch); NULL: all */
	unsigned int table; /* of csv: its index, see csv_table() */
	unsigned int width; /* columns, at least 60 */
	unsigned int top;   /* show at most this many phases, and processes; 0: the default */
	enum report_order order;
	unsigned int by_name; /* 1: phases that are called the same are one */
	bool colour;
};

struct renderer {
	const char *name;      /* of -f */
	const char *extension; /* of files in this format, with the dot; NULL: none */
	const char *what;      /* one line for --help */
	bool binary;	       /* not for terminals */
	/*
	 * Writes the whole report. The caller finds failed writes at the file's end; a renderer
	 * need not check. Returns 0, or -1 and *err: what cannot be rendered, and why.
	 */
	int (*render)(const struct recording *r, const struct render_options *options, FILE *out,
		      struct error *err);
};

/* Ends in NULL. The first is the default. */
extern const struct renderer *const renderers[];

/*
 * Returns the renderer for the extension of a file's name; the default for a name without one; or
 * NULL and *err if no format has the extension.
 */
const struct renderer *renderer_for_file(const char *path, struct error *err);

/* Returns the name of csv's table at index i, or NULL; the first is the default. */
const char *csv_table(size_t i);

/* Returns whether options->phase matches the name of any phase, or is NULL. */
bool render_has_phase(const struct render_options *options, const struct recording *r);

/* Returns whether options->phase matches the phase's name. */
bool render_wants_phase(const struct render_options *options, const struct recording_phase *phase);

#endif
