/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * line_pattern.h - a regular expression (PCRE2) that lines of a log are matched against.
 *
 * Lines are hostile: a match that takes too many steps is given up. A line may be invalid UTF-8;
 * the parts that are invalid match nothing.
 */
#ifndef QPROF_LINE_PATTERN_H
#define QPROF_LINE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { LINE_MAX_GROUPS = 16 };

struct line_pattern;

/* Part of a line: what a group of the pattern matched. Group 0 is the whole match. */
struct line_span {
	size_t from, to; /* equal: empty, or no part of the match */
};

struct line_match {
	struct line_span groups[LINE_MAX_GROUPS + 1];
	size_t n;
};

enum line_result {
	LINE_DIFFERS,
	LINE_MATCHES,
	LINE_MAY_MATCH,	 /* an unfinished line: what follows decides, or changes what groups hold */
	LINE_TOO_COSTLY, /* too many steps */
};

/* Returns NULL and *err, one line of why the pattern cannot be used. */
struct line_pattern *line_pattern_new(const char *text, struct error *err);
void line_pattern_free(struct line_pattern *p);
/* Returns how many groups the pattern has, at most LINE_MAX_GROUPS. */
size_t line_pattern_groups(const struct line_pattern *p);
/*
 * Matches len bytes. unfinished: more of the line may follow. headless: its beginning is missing,
 * so ^ does not match. *match is valid for LINE_MATCHES.
 */
enum line_result line_pattern_match(const struct line_pattern *p, const char *line, size_t len,
				    bool unfinished, bool headless, struct line_match *match);

#endif
