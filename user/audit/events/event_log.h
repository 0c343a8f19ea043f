/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * event_log.h - where lines go: a file that is rotated, or a stream (stdout, a FIFO) whose reader
 * may be slow. Only event_log_close() waits. A line that cannot be written waits in memory. The
 * memory is bounded; lines beyond it are lost, and counted.
 *
 * A regular file has whole lines at every moment, even if the process is killed. SIGKILL can cut a
 * write(2) short only between two pages of the file, so no line of up to 4096 bytes lies across two
 * pages. Blanks before a line fill the rest of a page: JSON allows them.
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
	uint64_t max_size; /* a file of this size becomes path.1; 0: no limit */
	unsigned int keep; /* how many: path.1 to path.N; 0: a full file is removed */
	size_t max_line;   /* the most bytes of a line */
};

struct event_log;

/*
 * Opens the stream; or opens the file to append to it, never through a link. A new file has mode
 * 0640 and, under sudo, belongs to the invoking user. capture, unless NULL, wakes the log when a
 * slow stream takes more. Returns 0, or -1 with *err set.
 */
int event_log_open(struct event_log **log, const struct event_log_options *options,
		   struct capture *capture, struct error *err);

/* Returns where to write one whole line with its newline; or NULL if there is no room, and counts
 * the line as lost. */
FILE *event_log_line(struct event_log *l);

/* Writes what can be written now. */
void event_log_flush(struct event_log *l);

/* Opens the file again, after somebody has moved it away. Does nothing to a stream. */
void event_log_reopen(struct event_log *l);

/* Returns how many lines were lost so far. */
uint64_t event_log_lost(const struct event_log *l);

/* Gives a slow reader one more second, then logs how many lines it did not take. NULL is fine. */
void event_log_close(struct event_log *l);

#endif
