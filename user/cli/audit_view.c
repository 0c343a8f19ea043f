/* SPDX-License-Identifier: GPL-2.0-only */
#include <unistd.h>

#include "cli/audit_options.h"
#include "base/log.h"
#include "audit/view/terminal.h"
#include "audit/view/view.h"

enum { OPT_LIVE = 0x400, OPT_NO_LIVE };

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "The live view:", 2},
	{"live", OPT_LIVE, NULL, 0,
	 "Show processes and jobs on the terminal while it goes on, as top does; the default where "
	 "stdout and stderr are a terminal (h: help)",
	 0},
	{"no-live", OPT_NO_LIVE, NULL, 0, "Show nothing meanwhile", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct view_options *chosen = state->input;

	(void)arg;
	switch (key) {
	case OPT_LIVE:
		chosen->wanted = LIVE;
		return 0;
	case OPT_NO_LIVE:
		chosen->wanted = NOT_LIVE;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp audit_view_argp = {.options = options, .parser = parse_option};

/* Where lines of a log go to the same terminal, nobody has asked for a screen to be drawn there. */
static bool wants_view(const struct view_options *chosen)
{
	if (chosen->quiet || chosen->wanted != LIVE_IF_POSSIBLE)
		return !chosen->quiet && chosen->wanted == LIVE;
	return isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) && log_level() == LOG_NORMAL &&
	       terminal_is_there();
}

int audit_view_listener(struct view_options *chosen, struct listener **listener, struct error *err)
{
	*listener = NULL;
	if (!wants_view(chosen))
		return 0;
	*listener = view_listener_new(chosen->colour, err);
	return *listener || chosen->wanted != LIVE ? 0 : -1;
}
