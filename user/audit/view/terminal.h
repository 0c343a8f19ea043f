/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * terminal.h - the controlling terminal as a screen to draw on, with ncurses.
 *
 * Nothing here waits for the terminal. If it is stopped, or slow, the rest of a frame stays in
 * memory until it takes more. terminal_hide() restores the terminal, and so do the signals that
 * kill us, such as SIGABRT.
 *
 * Life: terminal_open -> (terminal_show -> frames, keys -> terminal_hide), repeated ->
 * terminal_close. At most one is open.
 */
#ifndef QPROF_TERMINAL_H
#define QPROF_TERMINAL_H

#include <stdbool.h>

#include "base/error.h"

struct terminal;

enum terminal_tone {
	TERMINAL_PLAIN,
	TERMINAL_STRONG, /* bold */
	TERMINAL_FAINT,
	TERMINAL_TITLE,	  /* a column's title, on a bar */
	TERMINAL_CHOSEN,  /* the title of the column that is sorted by */
	TERMINAL_WARNING, /* yellow */
	TERMINAL_PHASE,	  /* cyan */
	TERMINAL_MORE,	  /* red: growth */
	TERMINAL_TONES,
};

/* Keys that are no characters. A character is its code point. */
enum terminal_key {
	TERMINAL_KEY_NONE = -1,
	TERMINAL_KEY_UP = 0x110000,
	TERMINAL_KEY_DOWN,
	TERMINAL_KEY_PAGE_UP,
	TERMINAL_KEY_PAGE_DOWN,
	TERMINAL_KEY_HOME,
	TERMINAL_KEY_END,
	TERMINAL_KEY_BACKSPACE,
	TERMINAL_KEY_ENTER,
	TERMINAL_KEY_OTHER, /* any other */
};

/* Returns true if there is a controlling terminal and our process group is in its foreground. */
bool terminal_is_there(void);

/* Leaves the terminal as it is. Returns NULL and sets *err if there is no terminal that can be
 * drawn on, or no memory. */
struct terminal *terminal_open(bool colour, struct error *err);
void terminal_close(struct terminal *t); /* NULL is fine */

/* Returns true if we are in the foreground: terminal_show() may be called. */
bool terminal_is_ours(const struct terminal *t);
/* Takes the screen, again if others have drawn on it. Returns 0, or -1 when out of memory. */
int terminal_show(struct terminal *t);
/* Gives the screen back as it was. */
void terminal_hide(struct terminal *t);
bool terminal_is_shown(const struct terminal *t);
/* Returns true once the terminal has hung up. */
bool terminal_is_lost(const struct terminal *t);

/* Returns the descriptor that can be read when there are keys. */
int terminal_keys_fd(const struct terminal *t);
/* Returns a character, an enum terminal_key, or TERMINAL_KEY_NONE if there are no more. */
int terminal_key(struct terminal *t);

/* Returns the descriptor that can be written when a terminal that is behind takes more. */
int terminal_out_fd(const struct terminal *t);
/* Returns true while the last frame is not all written. Draw no other until then. */
bool terminal_is_behind(const struct terminal *t);
void terminal_catch_up(struct terminal *t);

/* Asks for the size anew: call when it may have changed. */
void terminal_resize(struct terminal *t);
unsigned int terminal_columns(const struct terminal *t);
unsigned int terminal_lines(const struct terminal *t);

/* Begins a frame: texts follow, then terminal_end(). */
void terminal_begin(struct terminal *t);
/*
 * Puts a text on a line, from a column on, made safe and at most width columns wide. What is
 * outside the screen is left out. Returns the columns of the text.
 */
unsigned int terminal_text(struct terminal *t, unsigned int line, unsigned int column,
			   unsigned int width, enum terminal_tone tone, const char *text);
/* The same of a name, which is cut in the middle. */
unsigned int terminal_name(struct terminal *t, unsigned int line, unsigned int column,
			   unsigned int width, enum terminal_tone tone, const char *name);
/* Ends a frame. afresh also draws what did not change, as others may have drawn over it. */
void terminal_end(struct terminal *t, bool afresh);

#endif
