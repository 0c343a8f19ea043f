/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/text.h"

#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
enum { REPLACEMENT_LEN = sizeof(replacement) - 1 };

/* Returns the length of a character that begins with this byte, or 0 if none does. */
static size_t char_len(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	if (first >= 0xf0 && first <= 0xf4)
		return 4;
	return 0;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Returns true for a form that is too long, a surrogate, or a code beyond Unicode: a first byte
 * alone does not rule them out. */
static bool is_forbidden(uint32_t code, size_t len)
{
	if (len == 3)
		return code < 0x800 || (code >= 0xd800 && code <= 0xdfff);
	if (len == 4)
		return code < 0x10000 || code > 0x10ffff;
	return false;
}

size_t text_char(const char *s, size_t len, uint32_t *code)
{
	unsigned char first = (unsigned char)s[0];
	size_t n = char_len(first);

	if (n == 0 || n > len || first == '\0')
		return 0;
	*code = n == 1 ? first : first & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if (!is_continuation(s[i]))
			return 0;
		*code = *code << 6 | ((unsigned char)s[i] & 0x3f);
	}
	return is_forbidden(*code, n) ? 0 : n;
}

size_t text_whole(const char *s, size_t len)
{
	size_t tail = 0;

	while (tail < len && tail < 3 && is_continuation(s[len - 1 - tail]))
		tail++;
	if (tail == len)
		return len;
	return char_len((unsigned char)s[len - 1 - tail]) > tail + 1 ? len - tail - 1 : len;
}

size_t text_repair(char *out, size_t size, const char *s, size_t len, bool *repaired)
{
	size_t used = 0, n;
	bool bad = false;
	uint32_t code;

	for (size_t i = 0; i < len; i += n ? n : 1) {
		n = text_char(s + i, len - i, &code);

		size_t want = n ? n : REPLACEMENT_LEN;

		if (used + want >= size)
			break;
		memcpy(out + used, n ? s + i : replacement, want);
		used += want;
		bad |= n == 0;
	}
	out[used] = '\0';
	if (repaired)
		*repaired = bad;
	return used;
}

/* Returns true if it would move the cursor, or colour, hide or reorder the text around it. */
static bool is_unsafe(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x61c ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
	       (code >= 0xfff9 && code <= 0xfffb) || code == 0xfffe || code == 0xffff ||
	       code >= 0xe0000;
}

/* Knows East Asian wide characters and emoji by their blocks: enough to keep columns straight. */
static unsigned int char_columns(uint32_t code)
{
	bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
		    (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
		    (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
		    (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd);

	return wide ? 2 : 1;
}

/* A character as a terminal may show it. */
struct shown {
	size_t len; /* of the text; 1 for a byte that is no character */
	unsigned int columns;
	const char *bytes; /* the character itself or the replacement */
	size_t n_bytes;
};

/* The character at the start of len bytes, at least 1. */
static struct shown show(const char *s, size_t len)
{
	uint32_t code;
	const size_t n = text_char(s, len, &code);

	/* Line breaks and tabs of a command show where they were. */
	if (n == 1 && (*s == '\n' || *s == '\r' || *s == '\t'))
		return (struct shown){1, 2, *s == '\n' ? "\\n" : *s == '\r' ? "\\r" : "\\t", 2};
	if (!n || is_unsafe(code))
		return (struct shown){n ? n : 1, 1, replacement, REPLACEMENT_LEN};
	return (struct shown){n, char_columns(code), s, n};
}

unsigned int text_for_terminal(char *out, size_t size, const char *s, unsigned int columns)
{
	static const char more[] = "...";
	const unsigned int more_columns = sizeof(more) - 1;
	size_t len = strlen(s), used = 0, fallback = 0;
	unsigned int at = 0, fallback_at = 0;
	struct shown c;

	for (size_t i = 0; i < len; i += c.len) {
		c = show(s + i, len - i);
		/* The text is cut here if the rest does not fit. */
		if (at + more_columns <= columns) {
			fallback = used;
			fallback_at = at;
		}
		if (at + c.columns > columns || used + c.n_bytes >= size) {
			size_t room = size - 1 - fallback;
			size_t n = room < more_columns ? room : more_columns;

			n = n < columns - fallback_at ? n : columns - fallback_at;
			memcpy(out + fallback, more, n);
			out[fallback + n] = '\0';
			return fallback_at + (unsigned int)n;
		}
		memcpy(out + used, c.bytes, c.n_bytes);
		used += c.n_bytes;
		at += c.columns;
	}
	out[used] = '\0';
	return at;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns true if a cut before s[i] would leave a part of a number, which reads as another one. */
static bool is_within_number(const char *s, size_t i)
{
	return i && is_digit(s[i - 1]) && is_digit(s[i]);
}

/* Returns where the first characters end that take at most so many columns. */
static size_t first_columns(const char *s, size_t len, unsigned int columns)
{
	struct shown c;
	size_t i;

	for (i = 0; i < len; i += c.len) {
		c = show(s + i, len - i);
		if (c.columns > columns)
			break;
		columns -= c.columns;
	}
	return i;
}

static unsigned int columns_of(const char *s, size_t len)
{
	unsigned int columns = 0;
	struct shown c;

	for (size_t i = 0; i < len; i += c.len) {
		c = show(s + i, len - i);
		columns += c.columns;
	}
	return columns;
}

/* Returns where the last characters begin that take at most so many columns. */
static size_t last_columns(const char *s, size_t len, unsigned int columns)
{
	unsigned int left = columns_of(s, len);
	struct shown c;
	size_t i;

	for (i = 0; i < len && left > columns; i += c.len) {
		c = show(s + i, len - i);
		left -= c.columns;
	}
	return i;
}

/* Returns where the end begins that follows a cut: at a part of the name, if one begins there and
 * is not just an extension. */
static size_t after_cut(const char *s, size_t len, unsigned int columns)
{
	const size_t from = last_columns(s, len, columns);
	const size_t part_max = last_columns(s, len, columns / 2);
	size_t at = from;

	while (at <= part_max && !strchr("./ ", s[at - 1]))
		at++;
	if (at <= part_max)
		return at;
	for (at = from; at < len && is_within_number(s, at);)
		at++;
	return at < len ? at : from;
}

static unsigned int append(char *out, const char *s, size_t len)
{
	struct shown c;

	out += strlen(out);
	for (size_t i = 0; i < len; i += c.len) {
		c = show(s + i, len - i);
		memcpy(out, c.bytes, c.n_bytes);
		out += c.n_bytes;
	}
	*out = '\0';
	return columns_of(s, len);
}

unsigned int text_columns(const char *s)
{
	return columns_of(s, strlen(s));
}

/* Returns where the beginning ends, if a cut at `to` is within a number: behind the number if that
 * takes at most so many columns more, else before it. */
static size_t beside_number(const char *s, size_t to, unsigned int more)
{
	size_t at = to;

	while (is_within_number(s, at))
		at++;
	if (at - to <= more)
		return at;
	for (at = to; is_within_number(s, at);)
		at--;
	return at ? at : to;
}

unsigned int text_cut_middle(char *out, const char *s, unsigned int columns)
{
	static const char ellipsis[] = "\xe2\x80\xa6"; /* U+2026: one column */
	const size_t len = strlen(s);
	size_t begin = first_columns(s, len, columns), end;
	unsigned int after, used;

	out[0] = '\0';
	if (begin == len)
		return append(out, s, len);
	if (!columns)
		return 0;
	end = after_cut(s, len, columns / 2);
	after = columns_of(s + end, len - end);
	begin = first_columns(s, len, columns - 1 - after);
	begin = beside_number(s, begin, after / 2);
	used = append(out, s, begin);
	used += append(out, ellipsis, strlen(ellipsis));
	/* The end gives way to a number that took more. */
	if (after > columns - used)
		end = last_columns(s, len, columns - used);
	return used + append(out, s + end, len - end);
}
