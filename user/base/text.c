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

unsigned int text_for_terminal(char *out, size_t size, const char *s, unsigned int columns)
{
	static const char more[] = "...";
	const unsigned int more_columns = sizeof(more) - 1;
	size_t len = strlen(s), used = 0, fallback = 0, n;
	unsigned int at = 0, fallback_at = 0;
	uint32_t code;

	for (size_t i = 0; i < len; i += n ? n : 1) {
		n = text_char(s + i, len - i, &code);

		bool bad = n == 0 || is_unsafe(code);
		size_t want = bad ? REPLACEMENT_LEN : n;
		unsigned int wide = bad ? 1 : char_columns(code);

		/* The text is cut here if the rest does not fit. */
		if (at + more_columns <= columns) {
			fallback = used;
			fallback_at = at;
		}
		if (at + wide > columns || used + want >= size) {
			size_t room = size - 1 - fallback;

			n = room < more_columns ? room : more_columns;
			n = n < columns - fallback_at ? n : columns - fallback_at;
			memcpy(out + fallback, more, n);
			out[fallback + n] = '\0';
			return fallback_at + (unsigned int)n;
		}
		memcpy(out + used, bad ? replacement : s + i, want);
		used += want;
		at += wide;
	}
	out[used] = '\0';
	return at;
}
