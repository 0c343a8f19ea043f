/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * log_reader.h - the lines of one process's log, held against the items of a recipe.
 *
 * A line is matched as soon as its beginning is there, and once: llama-quantize writes
 * "[ 12/ 111] blk.0.attn_q.weight - ", works on the tensor, and then writes the rest of the line.
 * Pure: texts in, marks out.
 */
#ifndef QPROF_LOG_READER_H
#define QPROF_LOG_READER_H

#include "recipes/teller.h"

enum { LOG_STREAMS = 2 };

struct log_reader;

/* The teller must outlive it. Returns NULL when out of memory. */
struct log_reader *log_reader_new(struct teller *teller);
void log_reader_free(struct log_reader *r);

/*
 * What was written at once to a stream (0: stdout, 1: stderr); is_more: with the text before.
 * Returns 0, or what `tell` did.
 */
int log_reader_text(struct log_reader *r, unsigned int stream, const char *text, size_t len,
		    bool is_more, const struct recipe_tell *tell);
/* As log_stream_skip(). */
void log_reader_skip(struct log_reader *r, unsigned int stream, bool at_start);

#endif
