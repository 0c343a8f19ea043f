/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * emit.h - YAML, piece by piece, into a file that parses at every moment: libyaml's emitter in
 * front of a sink.
 *
 * Errors stick: after one, the calls do nothing, and emit_error() says what it was. Only block
 * collections may be long: a kill between two boundaries of a flow collection would leave it open.
 */
#ifndef QPROF_EMIT_H
#define QPROF_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emit;

enum emit_style { EMIT_BLOCK, EMIT_FLOW };

/* Begins a document in the file fd, which becomes the emitter's; NULL, when out of memory: it stays
 * the caller's. */
struct emit *emit_new(int fd);
/* Waits until what was committed is in the file, unless there was an error. NULL is fine. */
void emit_free(struct emit *e);

/* 0, or -errno of the first thing that went wrong. */
int emit_error(const struct emit *e);

/* "# line"; before the first event or after emit_end. */
void emit_comment(struct emit *e, const char *line);

void emit_map(struct emit *e, enum emit_style style);
void emit_map_end(struct emit *e);
void emit_list(struct emit *e, enum emit_style style);
void emit_list_end(struct emit *e);

/* A scalar as it stands: keys of our own, numbers, true, null. */
void emit_plain(struct emit *e, const char *text);
void emit_u64(struct emit *e, uint64_t value);
void emit_i64(struct emit *e, int64_t value);
/* With as many digits as it takes to read the same double back. */
void emit_double(struct emit *e, double value);
/*
 * A string, in quotes. Bytes that are no UTF-8 become U+FFFD; one that would take more than
 * EMIT_TEXT_MAX bytes with its escapes is cut and ends in "...". So the two that the emitter may
 * hold back at the begin of a list fit in a chunk, with what stands before them.
 */
enum { EMIT_TEXT_MAX = 1500 };
void emit_text(struct emit *e, const char *text);

/* The document is whole here: what was emitted so far is committed. */
void emit_boundary(struct emit *e);
/* Likewise, in the midst of something that is better kept together, only if it is getting long. */
void emit_boundary_if_long(struct emit *e);
/* What was committed is on its way to the file. 0, or -errno of what has failed by now. */
int emit_flush(struct emit *e);
/* Bytes that the file has not taken yet. */
size_t emit_waiting(struct emit *e);
/* Whether the file has all that was flushed, or a write failed. If not, the descriptor emit_event()
 * can be read once that changes; it can also when a write has failed. */
bool emit_is_idle(struct emit *e);
int emit_event(const struct emit *e);
/* Ends the document. */
void emit_end(struct emit *e);

#endif
