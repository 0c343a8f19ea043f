/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * output.h - a listener's YAML file: what the profile of a run and the report of an audit share.
 *
 * A listener that embeds a struct output first gets its functions but for start(), record() and
 * finish(), which are its own. They write to `emit`; an error of writing ends the capture.
 */
#ifndef QPROF_OUTPUT_H
#define QPROF_OUTPUT_H

#include "base/keep.h"
#include "capture/listener.h"
#include "format/emit.h"

struct output {
	struct listener listener; /* first: what others hold */
	struct capture *capture;
	struct emit *emit; /* NULL until prepare() */
	const char *path;  /* "-" is stdout; must outlive the listener */
	struct keep keep;  /* of what was at that path */
	const char *what;  /* "the profile": for errors */
	const char *rest;  /* what an error says after the reason */
};

/* A listener of `size` bytes, of which the rest is zero; NULL when out of memory. */
struct output *output_new(size_t size, const char *path, const char *what);
/* Ends the capture if err, an -errno of writing, is not 0. */
void output_check(struct output *o, int err);

#endif
