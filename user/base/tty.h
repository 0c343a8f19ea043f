/* SPDX-License-Identifier: GPL-2.0-only */
/* tty.h - how text may look at a file descriptor. */
#ifndef QPROF_TTY_H
#define QPROF_TTY_H

#include <stdbool.h>

enum { TTY_MAX_WIDTH = 512 };

/* Returns the columns of the terminal at fd, TTY_MAX_WIDTH at most; 80 if it is none. */
unsigned int tty_width(int fd);

/* Returns true unless the user does without colours (NO_COLOR). */
bool tty_may_colour(void);

/* Returns true for a terminal whose user does not do without colours. */
bool tty_colour(int fd);

#endif
