/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/served.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

enum { ACCOUNT_MS = 10000 /* that a service may take for what it says at the end */ };

static int ask(void *source)
{
	return ((struct source *)source)->ask(source);
}

struct launch_first served_ask(struct capture *c)
{
	struct source *source = c->options->source;

	return (struct launch_first){source ? ask : NULL, source};
}

int served_open(struct capture *c, int asked)
{
	struct source *source = c->options->source;
	struct error err = {0};

	if (!source || !source->open(source, asked, &c->info, &err))
		return 0;
	return capture_fail(c, &err);
}

int served_open_running(struct capture *c, const uint32_t *pids, const struct wake *exits, size_t n)
{
	struct source *source = c->options->source;

	if (served_open(c, source->ask_for(source, pids, n)))
		return -1;
	/* If it has ended by now, the service may have met another of that number. */
	for (size_t i = 0; i < n; i++) {
		struct pollfd end = {.fd = exits[i].fd, .events = POLLIN};

		if (poll(&end, 1, 0) > 0)
			return capture_failf(c, "process %u exited before it could be attached",
					     pids[i]);
	}
	return 0;
}

int served_await_start(struct capture *c, const bool *started)
{
	const struct source *source = c->options->source;
	int more = 0;

	while (!*started && !c->stop && !source->ended && more >= 0) {
		more = capture_read(c);
		capture_handle_signals(c);
		if (!more && !*started && !source->ended && !c->stop && capture_wait(c, -1))
			more = -1;
	}
	if (*started)
		log_info("attached to the processes, through the service; ^C ends it");
	return c->failed ? -1 : 0;
}

char *served_place(void *context, const struct wire_stored_name *record, const char *within)
{
	(void)context;
	(void)record;
	return strdup(within);
}

static void is_due(struct wake *wake)
{
	timer_clear(wake->fd);
	*(bool *)wake->context = true;
}

/* Returns false if it takes too long. */
static bool read_rest(struct capture *c, const struct source *source)
{
	bool late = false;
	struct wake due = {timer_new(), is_due, &late};
	int more;

	if (due.fd < 0)
		return false;
	capture_add(c, &due);
	timer_set(due.fd, (uint64_t)ACCOUNT_MS * 1000000);
	do {
		more = capture_read(c);
		if (!more && !source->ended && capture_wait(c, -1))
			more = -1;
	} while (!late && (more > 0 || (!more && !source->ended)));
	capture_remove(c, &due);
	close(due.fd);
	return !late;
}

void served_drain(struct capture *c)
{
	struct source *source = c->options->source;

	source->finish(source);
	if (!read_rest(c, source) || source->lost)
		capture_warn(c, "the service",
			     "it ended, or was held up, before it had told all: the end of the "
			     "run is missing, and what was lost before was not counted");
	else if (source->account.stopped)
		capture_warn(c, "the service",
			     "it was stopped before the command ended: what came then is missing");
	if (source->account.unreadable_files)
		capture_warn(c, "the service",
			     "there are files that you may not read: nothing in them was looked "
			     "for, by --usdt or --recipe");
	if (source->account.warnings)
		capture_warn(c, "the service",
			     "it has warnings, perhaps about files of this command: that a probe "
			     "could not be attached, say. Its report and its log name them");
}
