/* SPDX-License-Identifier: GPL-2.0-only */
/* One line on the terminal, a moment after something has happened, as long as nobody else uses it.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/tty.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/run.h"
#include "kernel/procfs.h"
#include "run/listeners.h"

enum { SHOW_AFTER_NS = 100000000, GROWTH_MAX = 160 };

struct live {
	struct listener listener; /* first */
	struct capture *capture;  /* NULL before start() */
	const struct listener *headroom;
	struct wake timer;
	bool stays_away; /* a target has the terminal, too */
	bool armed;	 /* the timer runs */
	bool shown;	 /* there is a line on the terminal */
};

static struct live *live_of(struct listener *l)
{
	return (struct live *)l;
}

/* A terminal that was stopped (^S) would stop us with the line. */
static bool terminal_takes_more(void)
{
	struct pollfd terminal = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&terminal, 1, 0) > 0 && terminal.revents & POLLOUT;
}

/* "  left 2.10 GiB", if that is little. */
static const char *left_words(const struct live *live, char out[64])
{
	char bytes[UNITS_TEXT_MAX];
	uint64_t left;
	const struct headroom_limit *limit = headroom_listener_now(live->headroom, &left);

	out[0] = '\0';
	if (limit && headroom_is_short(limit->now.limit, left))
		snprintf(out, 64, "  left %s", units_bytes_for_people(bytes, left));
	return out;
}

/* "  blk.# grows 1.44 GiB each: limit at about #41" */
static const char *growth_words(const struct live *live, char out[GROWTH_MAX])
{
	char bytes[UNITS_TEXT_MAX];
	struct growth_end end;

	out[0] = '\0';
	if (headroom_listener_end(live->headroom, &end))
		snprintf(out, GROWTH_MAX, "  %.60s grows %s each: limit at about #%" PRIu64,
			 end.name, units_bytes_for_people(bytes, end.per_repeat), end.at_repeat);
	return out;
}

static void show(struct live *live)
{
	const struct profile *p = run_profile(live->capture);
	const char *phase = profile_open_phase(p);
	char time[UNITS_TEXT_MAX], rss[UNITS_TEXT_MAX], peak[UNITS_TEXT_MAX];
	char left[64], growth[GROWTH_MAX], line[1024],
		safe[TTY_MAX_WIDTH * TEXT_TERMINAL_GROWTH + 1];

	/* In the background, the terminal is another's. */
	if (tcgetpgrp(STDERR_FILENO) != getpgrp() || !terminal_takes_more())
		return;
	snprintf(line, sizeof(line), "%s  RSS %s  peak %s%s%s  %s",
		 units_time_for_people(time, profile_rel_ns(p, clock_ns(CLOCK_MONOTONIC))),
		 units_bytes_for_people(rss, profile_rss_now(p)),
		 units_bytes_for_people(peak, profile_peak_so_far(p)), left_words(live, left),
		 growth_words(live, growth), phase ? phase : "");
	text_for_terminal(safe, sizeof(safe), line, tty_width(STDERR_FILENO) - 1);
	fprintf(stderr, "\r%s\033[K", safe);
	fflush(stderr);
	live->shown = true;
}

/* Takes the line away, so that another can be written. */
static void hide(void *context)
{
	struct live *live = context;

	if (!live->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	live->shown = false;
}

static void timer_fired(struct wake *wake)
{
	struct live *live = wake->context;

	timer_clear(wake->fd);
	live->armed = false;
	show(live);
}

/* Returns the name of the terminal at stderr as /proc gives it, or "". */
static const char *own_terminal(char out[PATH_MAX])
{
	const ssize_t len = readlink("/proc/self/fd/2", out, PATH_MAX - 1);

	out[len > 0 ? len : 0] = '\0';
	return out;
}

/* sudo may have put a terminal of its own between us and the user's. /dev/tty may be any. */
static int is_terminal(void *own, const char *path)
{
	const char *behind_sudo = getenv("SUDO_TTY");

	return !strcmp(path, own) || !strcmp(path, "/dev/tty") ||
	       (behind_sudo && !strcmp(path, behind_sudo));
}

/* Returns true if a target has our terminal open. */
static bool shares_terminal(const struct run_info *info)
{
	char own[PATH_MAX];

	own_terminal(own);
	for (size_t i = 0; i < info->n_pids; i++) {
		if (procfs_each_open((pid_t)info->pids[i], is_terminal, own) > 0)
			return true;
	}
	return false;
}

static int start(struct listener *l, struct capture *c, struct error *err)
{
	struct live *live = live_of(l);

	live->capture = c;
	live->stays_away = shares_terminal(capture_info(c));
	live->timer = (struct wake){timer_new(), timer_fired, live};
	if (live->timer.fd < 0 || capture_add(c, &live->timer))
		return error_set(err, "cannot set up a timer: %s", strerror(errno));
	return 0;
}

static void record(struct listener *l, const struct wire_header *h, const struct machine_news *news)
{
	struct live *live = live_of(l);

	(void)h;
	(void)news;
	if (live->armed || live->stays_away)
		return;
	timer_set(live->timer.fd, SHOW_AFTER_NS);
	live->armed = true;
}

/* What comes next on the terminal has the line to itself. */
static void finish(struct listener *l)
{
	struct live *live = live_of(l);

	timer_set(live->timer.fd, 0);
	hide(live);
}

static void close_live(struct listener *l)
{
	struct live *live = live_of(l);

	hide(live);
	log_set_hook(NULL, NULL);
	if (live->capture)
		close(live->timer.fd);
	free(live);
}

struct listener *live_listener_new(const struct listener *headroom)
{
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return NULL;
	live->listener = (struct listener){
		.start = start, .record = record, .finish = finish, .close = close_live};
	live->headroom = headroom;
	log_set_hook(hide, live);
	return &live->listener;
}
