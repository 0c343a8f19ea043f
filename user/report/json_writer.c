/* SPDX-License-Identifier: GPL-2.0-only */
#include "json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "units.h"

static void new_line(struct json_writer *j)
{
	if (!j->pretty || j->compact)
		return;
	putc_unlocked('\n', j->out);
	for (unsigned int i = 0; i < j->depth; i++)
		fputs_unlocked("  ", j->out);
}

/* What stands before a value. */
static void separate(struct json_writer *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (!j->first && j->depth)
		fputs_unlocked(j->compact ? ", " : ",", j->out);
	if (j->depth)
		new_line(j);
	j->first = false;
}

static void open_bracket(struct json_writer *j, char bracket)
{
	separate(j);
	putc_unlocked(bracket, j->out);
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
	putc_unlocked(bracket, j->out);
	j->first = false;
	/* 1 is json_compact's own: the bracket it was said for is closed. */
	if (j->compact && --j->compact == 1)
		j->compact = 0;
	if (!j->depth)
		putc_unlocked('\n', j->out);
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
	/* The line before it is still its own. */
	if (!j->after_key) {
		separate(j);
		j->after_key = true;
	}
	j->compact = 1;
}

void json_key(struct json_writer *j, const char *key)
{
	json_text(j, key);
	fputs_unlocked(j->pretty ? ": " : ":", j->out);
	j->after_key = true;
}

static void escape(FILE *out, uint32_t code)
{
	fprintf(out, "\\u%04" PRIx32, code);
}

static void put_char(FILE *out, const char *s, size_t len, uint32_t code)
{
	if (!len)
		fputs_unlocked("\xef\xbf\xbd", out);
	else if (code == '"' || code == '\\')
		fprintf(out, "\\%c", (int)code);
	else if (code < 0x20 || code == 0x7f || code == '<' || code == 0x2028 || code == 0x2029)
		escape(out, code);
	else
		fwrite_unlocked(s, 1, len, out);
}

/* Bytes at the start of a text that are written as they are: most texts are nothing else. */
static size_t plain_run(const char *text)
{
	size_t n = 0;

	for (;; n++) {
		const unsigned char c = (unsigned char)text[n];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<')
			return n;
	}
}

static void put_text(FILE *out, const char *text)
{
	const size_t len = strlen(text);
	size_t i = plain_run(text);

	fwrite_unlocked(text, 1, i, out);
	while (i < len) {
		uint32_t code = 0;
		const size_t n = text_char(text + i, len - i, &code);

		put_char(out, text + i, n, code);
		i += n ? n : 1;
	}
}

void json_text(struct json_writer *j, const char *text)
{
	if (!text) {
		json_plain(j, "null");
		return;
	}
	separate(j);
	putc_unlocked('"', j->out);
	put_text(j->out, text);
	putc_unlocked('"', j->out);
}

void json_plain(struct json_writer *j, const char *word)
{
	separate(j);
	fputs_unlocked(word, j->out);
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
