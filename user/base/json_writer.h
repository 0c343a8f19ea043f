/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * json_writer.h - writes JSON, value by value, to a FILE. It adds commas and blanks itself. The
 * FILE has all of a value when the outermost value is complete, perhaps earlier.
 *
 * The text can stand in a <script> of HTML: it has no "<", U+2028 or U+2029.
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
	bool first;	      /* the innermost object or array is empty */
	bool after_key;	      /* the value of a key comes next */
	bool pretty;	      /* a line for each value, indented */
	unsigned int compact; /* depth within what json_compact() began, plus 1 */
	size_t filled; /* bytes of text[], not in `out` yet: one call of a FILE for each piece is
			  slow */
	char text[512];
};

void json_object(struct json_writer *j);
void json_object_end(struct json_writer *j);
void json_array(struct json_writer *j);
void json_array_end(struct json_writer *j);
/* Writes the next object or array on one line, with all that is in it. */
void json_compact(struct json_writer *j);

void json_key(struct json_writer *j, const char *key);

/* Writes U+FFFD for each byte that is not UTF-8, and null for NULL. */
void json_text(struct json_writer *j, const char *text);
/* Writes a word as it is: a number, true, false or null. */
void json_plain(struct json_writer *j, const char *word);
void json_u64(struct json_writer *j, uint64_t value);
void json_i64(struct json_writer *j, int64_t value);
/* Writes as many digits as it takes to read the same double back; null for NaN and infinity. */
void json_double(struct json_writer *j, double value);

/* Write a member of an object: its key and its value. */
void json_member_text(struct json_writer *j, const char *key, const char *text);
void json_member_u64(struct json_writer *j, const char *key, uint64_t value);
void json_member_bool(struct json_writer *j, const char *key, bool value);

#endif
