/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * log_reader.h - what the log of one process says, by a recipe.
 *
 * A line is matched as soon as its beginning is there, and once: llama-quantize writes
 * "[ 12/ 111] blk.0.attn_q.weight - ", works on the tensor, and then writes the rest of the line.
 * Pure: texts in, marks out.
 */
#ifndef QPROF_LOG_READER_H
#define QPROF_LOG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipes/recipe.h"

enum { LOG_STREAMS = 2, LOG_NAME_MAX = 256 /* bytes of a name, its NUL included */ };

/* How a recipe did, over all processes that it matched. */
struct recipe_use {
	uint64_t processes;
	uint64_t matched[RECIPE_MAX_ITEMS]; /* lines, by item */
	uint64_t buffered;   /* of them, those that came with a line before: their time is late */
	uint64_t cut_lines;  /* longer than LOG_LINE_MAX */
	uint64_t too_costly; /* matches given up */
	uint64_t undrawn;    /* steps that a progress bar passed over */
};

/* What a line means. */
struct log_mark {
	enum recipe_does does; /* RECIPE_BEGIN, RECIPE_END, RECIPE_MARK; RECIPE_NOTHING: a metric */
	bool summary;
	bool has_value; /* the metric's text was a number */
	double value;
	const char *name; /* UTF-8 as far as the log is; valid until the function returns */
};

/* Returns 0; anything else ends the call that tells. */
typedef int (*log_mark_fn)(void *context, const struct log_mark *mark);

struct log_reader;

/* The recipe and *use must outlive it. Returns NULL when out of memory. */
struct log_reader *log_reader_new(const struct recipe *recipe, struct recipe_use *use);
void log_reader_free(struct log_reader *r);

/*
 * What was written at once to a stream (0: stdout, 1: stderr). Returns 0, or what `tell` did.
 */
int log_reader_text(struct log_reader *r, unsigned int stream, const char *text, size_t len,
		    log_mark_fn tell, void *context);
/* As log_stream_skip(). */
void log_reader_skip(struct log_reader *r, unsigned int stream, bool at_start);
/* The process ends: ends the phases that are open. */
int log_reader_end(struct log_reader *r, log_mark_fn tell, void *context);

#endif
