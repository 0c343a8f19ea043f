/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * log_stream.h - puts what a program writes to one descriptor together to lines, as a reader of its
 * terminal sees them: without colours, and a line that is drawn again (\r) is a new line.
 *
 * Example: "12%\r\x1b[1m100%\x1b[0m\ndone" is the line "12%", the line "100%" and "done",
 * unfinished.
 */
#ifndef QPROF_LOG_STREAM_H
#define QPROF_LOG_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_LINE_MAX = 4096 }; /* bytes of a line; the rest of it is left out */

struct log_stream {
	size_t len;
	bool headless; /* the beginning of the line was not seen */
	bool cut;      /* its end was left out */
	bool told;     /* and it was told of: it does not change any more */
	uint8_t escape;
	char end;	 /* ends a line, too; '\0': none does */
	uint64_t number; /* of the line: tells it from the line before */
	uint64_t cut_lines;
	size_t lines; /* that the last write has something of */
	char line[LOG_LINE_MAX];
};

/*
 * A line, or with `unfinished` what there is of it so far; more of it may come with the next text.
 * It is no NUL-terminated text, and valid until the function returns.
 */
struct log_line {
	const char *text;
	size_t len;
	bool unfinished, headless;
	bool shared; /* the write has something of other lines, too */
	uint64_t number;
};

typedef void (*log_line_fn)(void *context, const struct log_line *line);

/* Tells of each line that the text finishes, and at last of the unfinished one, if any. is_more:
 * the text is of the same write as the one before. */
void log_stream_add(struct log_stream *s, const char *text, size_t len, bool is_more,
		    log_line_fn tell, void *context);
/* Text was left out before the next. at_start: it ended a line, so the next begins one. */
void log_stream_skip(struct log_stream *s, bool at_start);

#endif
