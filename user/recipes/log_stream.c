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
	s->headless = false;
	s->number++;
}

static void tell_line(const struct log_stream *s, bool unfinished, log_line_fn tell, void *context)
{
	const struct log_line line = {s->line, s->len, unfinished && !s->cut, s->headless,
				      s->number};

	if (s->len)
		tell(context, &line);
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
static bool escape(struct log_stream *s, char c)
{
	switch (s->escape) {
	case AFTER_ESC:
		s->escape = c == '['					   ? IN_SEQUENCE
			    : c == ']' || c == 'P' || c == '_' || c == '^' ? IN_STRING
			    : c >= ' ' && c <= '/'			   ? IN_INTERMEDIATE
									   : NO_ESCAPE;
		return false;
	case IN_SEQUENCE:
		if (c >= '@' && c <= '~') {
			s->escape = NO_ESCAPE;
			return leaves_line(c);
		}
		return false;
	case IN_STRING:
		s->escape = c == '\a' ? NO_ESCAPE : c == '\x1b' ? ENDS_STRING : IN_STRING;
		return false;
	case ENDS_STRING:
		s->escape = c == '\\' ? NO_ESCAPE : IN_STRING;
		return false;
	default:
		s->escape = NO_ESCAPE;
		return false;
	}
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

void log_stream_add(struct log_stream *s, const char *text, size_t len, log_line_fn tell,
		    void *context)
{
	for (size_t i = 0; i < len; i++) {
		const char c = text[i];
		bool ends = false;

		if (c == '\n') /* whatever sequence it cuts off */
			s->escape = NO_ESCAPE;
		if (s->escape != NO_ESCAPE)
			ends = escape(s, c);
		else if (c == '\x1b')
			s->escape = AFTER_ESC;
		else if (c == '\n' || c == '\r' || (s->end && c == s->end))
			ends = true;
		else
			add_byte(s, c);
		if (!ends)
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
