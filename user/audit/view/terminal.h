/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * terminal.h - the controlling terminal as a screen to draw on, with ncurses.
 *
 * Nothing here ever waits for the terminal: one that is stopped, or far away, keeps what it was not
 * given yet, and nobody else waits for it. What is shown is undone by terminal_hide, and by the
 * signals of a process that dies (SIGABRT and its like): the terminal is as it was then.
 *
 * Life: terminal_open -> (terminal_show -> frames, keys -> terminal_hide), again and again ->
 * terminal_close. There is one at a time.
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
	TERMINAL_TITLE,	  /* of a column, on a bar */
	TERMINAL_CHOSEN,  /* likewise, the one that is sorted by */
	TERMINAL_WARNING, /* yellow */
	TERMINAL_PHASE,	  /* cyan */
	TERMINAL_MORE,	  /* red: grows */
	TERMINAL_TONES,
};

/* Keys that are no characters; those that are have their code points. */
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
	TERMINAL_KEY_OTHER, /* one that means nothing here */
};

/* Whether it belongs to our group of processes: not to a shell that has us in the background. False
 * also without a controlling terminal. */
bool terminal_is_there(void);

/* Leaves it as it is. NULL and *err: there is no terminal, or none that can be drawn on; or out of
 * memory. */
struct terminal *terminal_open(bool colour, struct error *err);
void terminal_close(struct terminal *t); /* NULL is fine */

/* Whether terminal_show may be called now: see terminal_is_there. */
bool terminal_is_ours(const struct terminal *t);
/* Takes the screen, or takes it again from whoever has drawn on it. 0, or -1: out of memory. */
int terminal_show(struct terminal *t);
/* Gives it back as it was. */
void terminal_hide(struct terminal *t);
bool terminal_is_shown(const struct terminal *t);
/* It has hung up: nothing will ever be seen, no key will come. */
bool terminal_is_lost(const struct terminal *t);

/* To be waited for: keys can be read. */
int terminal_keys_fd(const struct terminal *t);
/* A character, an enum terminal_key, or TERMINAL_KEY_NONE: no more are there. */
int terminal_key(struct terminal *t);

/* To be waited for while terminal_is_behind: more can be written. */
int terminal_out_fd(const struct terminal *t);
/* Has not taken all of the last frame yet: no other is to be drawn. */
bool terminal_is_behind(const struct terminal *t);
void terminal_catch_up(struct terminal *t);

/* Its size has changed. */
void terminal_resize(struct terminal *t);
unsigned int terminal_columns(const struct terminal *t);
unsigned int terminal_lines(const struct terminal *t);

/* A frame: begin, then texts, then end. */
void terminal_begin(struct terminal *t);
/*
 * The text of a line, from a column on: hostile bytes are made harmless, and it takes at most width
 * columns; what is outside of the screen is left out. Returns the columns that it takes.
 */
unsigned int terminal_text(struct terminal *t, unsigned int line, unsigned int column,
			   unsigned int width, enum terminal_tone tone, const char *text);
/* afresh: also what did not change, as somebody else may have drawn over it. */
void terminal_end(struct terminal *t, bool afresh);

#endif
