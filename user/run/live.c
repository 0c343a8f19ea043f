/* SPDX-License-Identifier: GPL-2.0-only */
#include "run/live.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/tty.h"
#include "base/units.h"

/* A terminal that was stopped (^S) would stop us with the line. */
static bool takes_more(int fd)
{
	struct pollfd terminal = {.fd = fd, .events = POLLOUT};

	return poll(&terminal, 1, 0) > 0 && terminal.revents & POLLOUT;
}

void live_show(void *context, const struct profile *p, uint64_t now_ns)
{
	const char *phase = profile_open_phase(p);
	char time[UNITS_TEXT_MAX], rss[UNITS_TEXT_MAX], peak[UNITS_TEXT_MAX];
	char line[1024], safe[TTY_MAX_WIDTH * TEXT_TERMINAL_GROWTH + 1];
	struct live *live = context;

	if (!takes_more(STDERR_FILENO))
		return;
	snprintf(line, sizeof(line), "%s  RSS %s  peak %s  %s",
		 units_time_for_people(time, profile_rel_ns(p, now_ns)),
		 units_bytes_for_people(rss, profile_rss_now(p)),
		 units_bytes_for_people(peak, profile_peak_so_far(p)), phase ? phase : "");
	text_for_terminal(safe, sizeof(safe), line, tty_width(STDERR_FILENO) - 1);
	fprintf(stderr, "\r%s\033[K", safe);
	fflush(stderr);
	live->shown = true;
}

void live_hide(void *context)
{
	struct live *live = context;

	if (!live->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	live->shown = false;
}
