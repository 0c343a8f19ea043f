/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

static void flush(struct json_writer *j)
{
	fwrite_unlocked(j->text, 1, j->filled, j->out);
	j->filled = 0;
}

static void put(struct json_writer *j, const char *bytes, size_t n)
{
	if (n > sizeof(j->text) - j->filled)
		flush(j);
	if (n > sizeof(j->text)) {
		fwrite_unlocked(bytes, 1, n, j->out);
		return;
	}
	memcpy(j->text + j->filled, bytes, n);
	j->filled += n;
}

static void put_byte(struct json_writer *j, char byte)
{
	if (j->filled == sizeof(j->text))
		flush(j);
	j->text[j->filled++] = byte;
}

static void new_line(struct json_writer *j)
{
	if (!j->pretty || j->compact)
		return;
	put_byte(j, '\n');
	for (unsigned int i = 0; i < j->depth; i++)
		put(j, "  ", 2);
}

/* Writes what stands before a value. */
static void separate(struct json_writer *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (!j->first && j->depth)
		put(j, ", ", j->compact ? 2 : 1);
	if (j->depth)
		new_line(j);
	j->first = false;
}

/* The outermost value may be complete. */
static void end_value(struct json_writer *j)
{
	if (!j->depth)
		flush(j);
}

static void open_bracket(struct json_writer *j, char bracket)
{
	separate(j);
	put_byte(j, bracket);
	j->depth++;
	j->first = true;
	if (j->compact)
		j->compact++;
}

static void close_bracket(struct json_writer *j, char bracket)
{
	j->depth--;
	if (!j->first)
		new_line(j);
	put_byte(j, bracket);
	j->first = false;
	/* 1 is json_compact()'s own: its bracket is closed. */
	if (j->compact && --j->compact == 1)
		j->compact = 0;
	if (!j->depth)
		put_byte(j, '\n');
	end_value(j);
}

void json_object(struct json_writer *j)
{
	open_bracket(j, '{');
}

void json_object_end(struct json_writer *j)
{
	close_bracket(j, '}');
}

void json_array(struct json_writer *j)
{
	open_bracket(j, '[');
}

void json_array_end(struct json_writer *j)
{
	close_bracket(j, ']');
}

void json_compact(struct json_writer *j)
{
	if (j->compact)
		return;
	/* Its own line is begun before it is compact. */
	if (!j->after_key) {
		separate(j);
		j->after_key = true;
	}
	j->compact = 1;
}

void json_key(struct json_writer *j, const char *key)
{
	json_text(j, key);
	put(j, ": ", j->pretty ? 2 : 1);
	j->after_key = true;
}

static void put_char(struct json_writer *j, const char *s, size_t len, uint32_t code)
{
	char escaped[16];
	int n = 0;

	if (!len)
		put(j, "\xef\xbf\xbd", 3);
	else if (code == '"' || code == '\\')
		n = snprintf(escaped, sizeof(escaped), "\\%c", (int)code);
	else if (code < 0x20 || code == 0x7f || code == '<' || code == 0x2028 || code == 0x2029)
		n = snprintf(escaped, sizeof(escaped), "\\u%04" PRIx32, code);
	else
		put(j, s, len);
	put(j, escaped, (size_t)n);
}

/* Returns how many bytes at the start of a text need no escape: mostly, all of them. */
static size_t plain_run(const char *text)
{
	size_t n = 0;

	for (;; n++) {
		const unsigned char c = (unsigned char)text[n];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<')
			return n;
	}
}

static void put_text(struct json_writer *j, const char *text)
{
	const size_t plain = plain_run(text);
	const char *rest = text + plain;
	size_t len, n;

	put(j, text, plain);
	if (!*rest)
		return;
	for (len = strlen(rest); len; rest += n, len -= n) {
		uint32_t code = 0;

		n = text_char(rest, len, &code);
		put_char(j, rest, n, code);
		n += !n;
	}
}

void json_text(struct json_writer *j, const char *text)
{
	if (!text) {
		json_plain(j, "null");
		return;
	}
	separate(j);
	put_byte(j, '"');
	put_text(j, text);
	put_byte(j, '"');
	end_value(j);
}

void json_plain(struct json_writer *j, const char *word)
{
	separate(j);
	put(j, word, strlen(word));
	end_value(j);
}

void json_u64(struct json_writer *j, uint64_t value)
{
	char text[UNITS_TEXT_MAX];

	json_plain(j, units_count(text, value));
}

void json_i64(struct json_writer *j, int64_t value)
{
	char text[UNITS_TEXT_MAX];

	snprintf(text, sizeof(text), "%" PRId64, value);
	json_plain(j, text);
}

void json_double(struct json_writer *j, double value)
{
	char text[UNITS_TEXT_MAX];

	json_plain(j, isfinite(value) ? units_double(text, value) : "null");
}

void json_member_text(struct json_writer *j, const char *key, const char *text)
{
	json_key(j, key);
	json_text(j, text);
}

void json_member_u64(struct json_writer *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

void json_member_bool(struct json_writer *j, const char *key, bool value)
{
	json_key(j, key);
	json_plain(j, value ? "true" : "false");
}
