/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/audit_options.h"

enum { MIN_SIZE = 65536, MAX_KEEP = 1000 };

static const struct choice format_choices[] = {{"ndjson", EVENTS_NDJSON}, {0}};

static const struct choice group_choices[] = {{"processes", EVENTS_PROCESSES},
					      {"jobs", EVENTS_JOBS},
					      {"checkpoints", EVENTS_CHECKPOINTS},
					      {0}};

const struct command_option audit_events_options[] = {
	HEADING("Events, for log pipelines:"),
	{0, "events", "ndjson",
	 "Write what happens as it happens, a JSON object a line, to stdout; there is a report "
	 "only with -o then",
	 OPT_CHOICE, INTO(struct event_options, format), .choices = format_choices,
	 .wrong = "there is only ndjson"},
	{0, "events-file", "FILE",
	 "Append them to FILE, which SIGHUP opens anew (implies --events ndjson)", OPT_PATH,
	 INTO(struct event_options, path)},
	{0, "events-max-size", "SIZE",
	 "Rename FILE to FILE.1 when it has SIZE (default 64M; 0: never)", OPT_SIZE,
	 INTO(struct event_options, max_size), .least = MIN_SIZE,
	 .wrong = "not a size such as 64M, of 64K at least"},
	{0, "events-keep", "N", "Keep FILE.1 to FILE.N (default 4)", OPT_COUNT,
	 INTO(struct event_options, keep), .most = MAX_KEEP},
	{0, "events-only", "LIST", "Leave out all but these of processes,jobs,checkpoints",
	 OPT_CHOICES, INTO(struct event_options, groups), .choices = group_choices,
	 .wrong = "not a list such as jobs,processes (or checkpoints), each once"},
	{0, "events-rate", "N",
	 "Write at most N lines a second of the checkpoints of a job, and 4 N of the processes of "
	 "a user (default 1000; 0: no limit); more are counted",
	 OPT_COUNT, INTO(struct event_options, rate)},
	{0, "events-no-cmdline", NULL, "Leave out command lines: they may hold secrets", OPT_FLAG,
	 INTO(struct event_options, no_cmdline)},
	{0},
};

const struct event_options audit_events_default = {
	.max_size = EVENTS_MAX_SIZE,
	.keep = EVENTS_KEEP,
	.groups = EVENTS_ALL,
	.rate = EVENTS_RATE,
};

int audit_events_listener(struct event_options *chosen, struct listener **listener,
			  struct error *err)
{
	*listener = NULL;
	if (!chosen->format && !chosen->path)
		return 0;
	*listener = events_listener_new(chosen);
	return *listener ? 0 : error_set(err, "out of memory");
}
