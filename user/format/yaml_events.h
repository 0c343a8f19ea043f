/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * yaml_events.h - libyaml's events, one at a time, and messages that say in which line of the file
 * something is wrong.
 *
 * Every byte may be hostile. Anchors, aliases and tags are refused, so a small file cannot become
 * large; and libyaml, which has to keep a whole scalar, gets no more input once it has had
 * YAML_INPUT_BUFFER bytes without making an event of them.
 *
 * A run that was killed leaves a file that ends between two lines. The event at hand is the
 * stream's end then, where something else was to come, and `cut` is set.
 *
 * What returns int returns 0, or -1 with *err set.
 */
#ifndef QPROF_YAML_EVENTS_H
#define QPROF_YAML_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/error.h"
#include "format/yaml_input.h"

struct reader {
	yaml_parser_t yaml;
	yaml_event_t event; /* the one at hand */
	struct yaml_input input;
	const char *name; /* of the file, for messages */
	struct error *err;
	struct arena *arena; /* where what was read is kept */
	bool cut;	     /* the end came in the midst of something */
};

/* Each sets the message and returns -1. */
int reader_fail(struct reader *r, size_t line, const char *what, const char *why);
int reader_fail_here(struct reader *r, const char *what, const char *why);
/* The value at hand is no `wanted`. */
int reader_fail_value(struct reader *r, const char *key, const char *wanted);
int reader_out_of_memory(struct reader *r);

/* The line of the event at hand, from 1. */
size_t reader_line(const struct reader *r);

/* Goes on to the next event. After the stream's end comes the end again. */
int reader_next(struct reader *r);
/* Goes past the scalar, list or map at hand. */
int reader_skip(struct reader *r);

bool reader_at(const struct reader *r, yaml_event_type_t type);
/* Whether the event at hand stands where the file ends: what follows it may have been cut off. */
bool reader_at_end(const struct reader *r);

/* Of the scalar at hand. */
const char *reader_scalar(const struct reader *r);
bool reader_is_plain(const struct reader *r);
bool reader_is_null(const struct reader *r);

#endif
