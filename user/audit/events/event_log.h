/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * event_log.h - where lines go: a file that is rotated, or a stream (stdout, a FIFO) whose reader
 * may be slow. Nothing here waits, but for the close. What cannot be written waits in memory, of
 * which there is a bounded amount; then lines are lost, and counted.
 *
 * A regular file has whole lines at every moment, also if the process is killed: the kernel lets
 * SIGKILL cut a write(2) short only between two pages of the file, so no line of up to 4096 bytes
 * lies across a page boundary. Blanks before a line fill what is left of a page: JSON may have
 * them.
 */
#ifndef QPROF_EVENT_LOG_H
#define QPROF_EVENT_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "capture/listener.h"

struct event_log_options {
	const char *path;  /* NULL: stdout. Must outlive the log */
	uint64_t max_size; /* of the file, then it becomes path.1; 0: no limit */
	unsigned int keep; /* path.1 to path.N; 0: what is in a full file is gone */
	size_t max_line;   /* bytes that a line has at most */
};

struct event_log;

/*
 * Opens the file to append to it (created with mode 0640, under sudo the invoking user's; a link is
 * refused), or the stream. capture wakes us when a slow stream takes more; NULL: nobody does. 0, or
 * -1 and *err.
 */
int event_log_open(struct event_log **log, const struct event_log_options *options,
		   struct capture *capture, struct error *err);

/* Where to write one whole line, its newline included. NULL: there is no room; that is counted. */
FILE *event_log_line(struct event_log *l);

/* Writes what can be written now. */
void event_log_flush(struct event_log *l);

/* The file was moved away, or should have been: opens it anew. A stream stays. */
void event_log_reopen(struct event_log *l);

/* Lines for which there was no room, so far. */
uint64_t event_log_lost(const struct event_log *l);

/* Gives a slow stream a second more, then says what did not get out. NULL is fine. */
void event_log_close(struct event_log *l);

#endif
