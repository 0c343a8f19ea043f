/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * emit.h - YAML, piece by piece, into a file that parses at every moment: libyaml's emitter in
 * front of a sink.
 *
 * Errors stick: after one, all calls do nothing, and emit_error() returns it. A flow collection
 * must be short: a kill between two boundaries within it would leave it open. Block collections may
 * be long.
 */
#ifndef QPROF_EMIT_H
#define QPROF_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emit;

enum emit_style { EMIT_BLOCK, EMIT_FLOW };

/* Begins a document in the file fd, and closes fd at the end. NULL when out of memory: fd is still
 * the caller's then. */
struct emit *emit_new(int fd);
/* Waits until the file has all that was committed, unless there was an error. NULL is fine. */
void emit_free(struct emit *e);

/* Returns 0, or -errno of the first error. */
int emit_error(const struct emit *e);

/* Writes "# line". Only before the first event, or after emit_end. */
void emit_comment(struct emit *e, const char *line);

void emit_map(struct emit *e, enum emit_style style);
void emit_map_end(struct emit *e);
void emit_list(struct emit *e, enum emit_style style);
void emit_list_end(struct emit *e);

/* A scalar without quotes: a key of the format, a number, true, null. */
void emit_plain(struct emit *e, const char *text);
void emit_u64(struct emit *e, uint64_t value);
void emit_i64(struct emit *e, int64_t value);
/* With as many digits as reading the same double back takes. */
void emit_double(struct emit *e, double value);
/*
 * A string in quotes. Bytes that are no UTF-8 become U+FFFD. A string that takes more than
 * EMIT_TEXT_MAX bytes with its escapes is cut and ends in "...". So the two strings that the
 * emitter may hold back at the begin of a list fit into a chunk.
 */
enum { EMIT_TEXT_MAX = 1500 };
void emit_text(struct emit *e, const char *text);

/* The document is whole here: commits what was emitted so far. */
void emit_boundary(struct emit *e);
/* The same, only if it is getting long: in the midst of an item that should stay together. */
void emit_boundary_if_long(struct emit *e);
/* Sends what was committed to the file. Returns 0, or -errno of what has failed by now. */
int emit_flush(struct emit *e);
/* Returns the bytes that the file has not taken yet. */
size_t emit_waiting(struct emit *e);
/* Returns true if the file has all that was flushed, or a write failed. When that becomes true, the
 * descriptor emit_event() becomes readable. */
bool emit_is_idle(struct emit *e);
int emit_event(const struct emit *e);
/* Ends the document. */
void emit_end(struct emit *e);

#endif
