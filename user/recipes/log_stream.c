/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/log_stream.h"

/* Where we are in an escape sequence (ECMA-48). */
enum {
	NO_ESCAPE,
	AFTER_ESC,	 /* ESC */
	IN_SEQUENCE,	 /* ESC [ ... up to a letter */
	IN_STRING,	 /* ESC ] ... up to BEL or ESC \ */
	ENDS_STRING,	 /* ESC in a string */
	IN_INTERMEDIATE, /* ESC ( and the like: one more byte */
};

static void begin_line(struct log_stream *s)
{
	s->cut_lines += s->cut;
	s->len = 0;
	s->cut = false;
	s->told = false;
	s->headless = false;
	s->number++;
}

static void tell_line(struct log_stream *s, bool unfinished, log_line_fn tell, void *context)
{
	const struct log_line line = {
		.text = s->line,
		.len = s->len,
		.unfinished = unfinished && !s->cut,
		.headless = s->headless,
		.shared = s->lines > 1,
		.number = s->number,
	};

	if (s->len && !s->told)
		tell(context, &line);
	s->told = s->cut;
}

/* Returns true if the sequence moves to another line: what is drawn there is no part of this one.
 * Moves within a line are as good as none for a reader. */
static bool leaves_line(char final)
{
	switch (final) {
	case 'A': /* up: progress bars that stand below each other */
	case 'B':
	case 'E':
	case 'F':
	case 'H':
	case 'f':
	case 'd':
	case 'G': /* to a column: draws the line again */
	case 'J':
		return true;
	default:
		return false;
	}
}

/* Takes a byte of an escape sequence. Returns true if it ends the line. */
static bool escape(uint8_t *state, char c)
{
	switch (*state) {
	case AFTER_ESC:
		*state = c == '['					? IN_SEQUENCE
			 : c == ']' || c == 'P' || c == '_' || c == '^' ? IN_STRING
			 : c >= ' ' && c <= '/'				? IN_INTERMEDIATE
									: NO_ESCAPE;
		return false;
	case IN_SEQUENCE:
		if (c >= '@' && c <= '~') {
			*state = NO_ESCAPE;
			return leaves_line(c);
		}
		return false;
	case IN_STRING:
		*state = c == '\a' ? NO_ESCAPE : c == '\x1b' ? ENDS_STRING : IN_STRING;
		return false;
	case ENDS_STRING:
		*state = c == '\\' ? NO_ESCAPE : IN_STRING;
		return false;
	default:
		*state = NO_ESCAPE;
		return false;
	}
}

/* What a byte is to a line. */
enum byte { BYTE_NONE, BYTE_TEXT, BYTE_END };

/* end: a byte that ends a line besides; NUL: none. */
static enum byte look_at(uint8_t *state, char end, char c)
{
	if (c == '\n') /* whatever sequence it cuts off */
		*state = NO_ESCAPE;
	if (*state != NO_ESCAPE)
		return escape(state, c) ? BYTE_END : BYTE_NONE;
	if (c == '\x1b')
		*state = AFTER_ESC;
	if (c == '\x1b')
		return BYTE_NONE;
	return c == '\n' || c == '\r' || (end && c == end) ? BYTE_END : BYTE_TEXT;
}

/* Returns how many lines a text has something of that can be seen. */
static size_t count_lines(const struct log_stream *s, const char *text, size_t len)
{
	uint8_t state = s->escape;
	size_t lines = 0;
	bool any = false;

	for (size_t i = 0; i < len; i++) {
		const enum byte is = look_at(&state, s->end, text[i]);

		lines += is == BYTE_END && any;
		any = is != BYTE_END && (any || (is == BYTE_TEXT && (unsigned char)text[i] > ' '));
	}
	return lines + any;
}

static void add_byte(struct log_stream *s, char c)
{
	if (c == '\b')
		s->len -= s->len > 0;
	else if ((unsigned char)c < ' ' && c != '\t')
		return;
	else if (s->len < LOG_LINE_MAX)
		s->line[s->len++] = c;
	else
		s->cut = true;
}

void log_stream_add(struct log_stream *s, const char *text, size_t len, bool is_more,
		    log_line_fn tell, void *context)
{
	s->lines = (is_more ? s->lines : 0) + count_lines(s, text, len);
	for (size_t i = 0; i < len; i++) {
		const enum byte is = look_at(&s->escape, s->end, text[i]);

		if (is == BYTE_TEXT)
			add_byte(s, text[i]);
		if (is != BYTE_END)
			continue;
		tell_line(s, false, tell, context);
		begin_line(s);
	}
	tell_line(s, true, tell, context);
}

void log_stream_skip(struct log_stream *s, bool at_start)
{
	begin_line(s);
	s->escape = NO_ESCAPE;
	s->headless = !at_start;
}
