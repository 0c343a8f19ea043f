/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sink.h - a file that can be read at every moment, even if the writing process is killed.
 *
 * The kernel lets SIGKILL cut a write(2) to a regular file short only between two pages of the
 * file. So text is taken in chunks after each of which the file is whole, no chunk lies across a
 * page boundary, and each write(2) is within one page. What is left of a page when the next chunk
 * does not fit is filled with a comment ("#" and blanks): the format is to be one that has such
 * comments.
 *
 * Anything else than a regular file (a pipe, a terminal) gets the text as it is.
 *
 * Nothing here waits for the file, but for sink_close: see outlet.h.
 */
#ifndef QPROF_SINK_H
#define QPROF_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include "format/outlet.h"

/* The longest chunk that no kill cuts. */
enum { SINK_PAGE = OUTLET_PAGE };

struct sink;

/* Writes to fd from its position on, and closes it at the end. NULL when out of memory. */
struct sink *sink_new(int fd);

/*
 * Takes a chunk: whole lines with their newlines; the text is whole after it. A kill may cut a
 * chunk longer than SINK_PAGE. sink_flush sends it to the file. Returns 0, or -errno of a write
 * that has failed by now: nothing more is taken then, and the file is whole.
 */
int sink_commit(struct sink *s, const char *text, size_t len);

/* Sends all chunks on their way to the file. Returns as sink_commit. */
int sink_flush(struct sink *s);

/* Returns the bytes that the file has not taken yet. */
size_t sink_waiting(struct sink *s);

/* As outlet_is_idle and outlet_event. */
bool sink_is_idle(struct sink *s);
int sink_event(const struct sink *s);

/* Flushes, unless a write has failed, waits, and closes the file. NULL is fine. */
void sink_close(struct sink *s);

#endif
