/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/tty.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

unsigned int tty_width(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) || size.ws_col < 20)
		return 80;
	return size.ws_col > TTY_MAX_WIDTH ? TTY_MAX_WIDTH : size.ws_col;
}

bool tty_may_colour(void)
{
	const char *no_colour = getenv("NO_COLOR");

	return !no_colour || !*no_colour;
}

bool tty_colour(int fd)
{
	return isatty(fd) && tty_may_colour();
}
