/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/view/terminfo.h"

#include <stdlib.h>
#include <string.h>

#include <curses.h>
#include <term.h>

/* Static, as tputs() passes its function a byte and no context. */
static struct {
	char bytes[256];
	size_t len;
} put;

static int put_byte(int c)
{
	if (put.len < sizeof(put.bytes))
		put.bytes[put.len++] = (char)c;
	return c;
}

static const char *capability(const char *name)
{
	const char *text = tigetstr(name);

	/* NOLINTNEXTLINE(performance-no-int-to-ptr): it is how tigetstr() says no */
	return text == (const char *)-1 ? NULL : text;
}

/* Writes what ncurses writes at its end: keypad, colours, attributes, cursor, screen. */
static void put_restore(char *out, size_t size, size_t *len)
{
	static const char *const names[] = {"rmkx", "op", "sgr0", "cnorm", "rmcup"};

	*len = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *text = capability(names[i]);

		put.len = 0;
		if (text)
			tputs(text, 1, put_byte);
		if (put.len > size - *len)
			continue;
		memcpy(out + *len, put.bytes, put.len);
		*len += put.len;
	}
}

int terminfo_restore(int fd, char *out, size_t size, size_t *len, struct error *err)
{
	const char *name = getenv("TERM");
	bool moves;
	int found;

	name = name ? name : "";
	if (setupterm(NULL, fd, &found) == ERR)
		return error_set(err,
				 "--live: the type '%.32s' (TERM) of this terminal is not known: "
				 "set TERM, or use --no-live",
				 name);
	moves = capability("cup");
	put_restore(out, size, len);
	del_curterm(cur_term);
	return moves ? 0
		     : error_set(
			       err,
			       "--live: a terminal of the type '%.32s' (TERM) cannot be drawn on: "
			       "set TERM, or use --no-live",
			       name);
}
