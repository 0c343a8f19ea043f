/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * json_writer.h - JSON, value by value, into a FILE. Commas and blanks come by themselves. What is
 * written is in the FILE when the outermost value is complete, and perhaps before.
 *
 * What is written may stand in a <script> of HTML as it is: no "<" and no U+2028 or U+2029 in it.
 */
#ifndef QPROF_JSON_WRITER_H
#define QPROF_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
	FILE *out;
	unsigned int depth;
	bool first;	      /* nothing in the innermost object or array yet */
	bool after_key;	      /* a key was written: its value follows */
	bool pretty;	      /* a line for each value, indented */
	unsigned int compact; /* depth within json_begin_compact */
	size_t filled;	      /* of text: not in `out` yet. A FILE wants a call for each piece */
	char text[512];
};

void json_object(struct json_writer *j);
void json_object_end(struct json_writer *j);
void json_array(struct json_writer *j);
void json_array_end(struct json_writer *j);
/* The next object or array, and what is in it, is on one line. */
void json_compact(struct json_writer *j);

void json_key(struct json_writer *j, const char *key);

/* Bytes that are no UTF-8 become U+FFFD; NULL is null. */
void json_text(struct json_writer *j, const char *text);
/* A number, true, false or null as it stands. */
void json_plain(struct json_writer *j, const char *word);
void json_u64(struct json_writer *j, uint64_t value);
void json_i64(struct json_writer *j, int64_t value);
/* So that the same double is read back; null for what is no number in JSON (NaN, infinity). */
void json_double(struct json_writer *j, double value);

/* A member of an object: its key, and such a value. */
void json_member_text(struct json_writer *j, const char *key, const char *text);
void json_member_u64(struct json_writer *j, const char *key, uint64_t value);
void json_member_bool(struct json_writer *j, const char *key, bool value);

#endif
