/* SPDX-License-Identifier: GPL-2.0-only */
#include <unistd.h>

#include "audit/view/terminal.h"
#include "audit/view/view.h"
#include "base/log.h"
#include "cli/audit_options.h"

const struct command_option audit_view_options[] = {
	HEADING("The live view:"),
	{0, "live", NULL,
	 "Show processes and jobs on the terminal while it goes on, as top does; the default where "
	 "stdout and stderr are a terminal (h: help)",
	 OPT_SET, INTO(struct view_options, wanted), .set = LIVE},
	{0, "no-live", NULL, "Show nothing meanwhile", OPT_SET, INTO(struct view_options, wanted),
	 .set = NOT_LIVE},
	{0},
};

/* A log on the same terminal (-v) and a screen exclude each other, unless --live asks for both. */
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
