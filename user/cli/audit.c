/* SPDX-License-Identifier: GPL-2.0-only */
/* audit.c - qprof-bpf -a: the options. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit.h"
#include "commands.h"
#include "live.h"
#include "log.h"
#include "parse.h"
#include "terminal.h"
#include "view.h"

enum { OPT_USDT = 256, OPT_MAX_PROCESSES, OPT_CHECKPOINT_LIMIT, OPT_LIVE, OPT_NO_LIVE };

enum {
	MAX_MAX_PROCESSES = 262144,
	CHECKPOINT_LIMIT = 100000, /* a process, a second */
	MAX_PARTS = 8,
};

static const struct argp_option options[] = {
	{"all", 'a', NULL, 0, "Audit every process of the machine", 0},
	{"output", 'o', "FILE", 0, "Write the report to FILE (default audit.yaml; - is stdout)", 0},
	{"duration", 'd', "TIME", 0, "Stop after TIME: 10s, 5m, 500ms (a bare number is seconds)",
	 0},
	{"usdt", OPT_USDT, "PROVIDER:NAME", 0,
	 "Take these probes as checkpoints, too; * and ? match (repeatable)", 0},
	{"max-processes", OPT_MAX_PROCESSES, "N", 0,
	 "Track at most N processes at a time, and keep N with those that have ended (default "
	 "65536); more are counted",
	 0},
	{"checkpoint-limit", OPT_CHECKPOINT_LIMIT, "N", 0,
	 "Take at most N checkpoints of a process in a second (default 100000; 0: no limit); more "
	 "are counted",
	 0},
	{"live", OPT_LIVE, NULL, 0,
	 "Show processes and jobs on the terminal while it goes on, as top does; the default where "
	 "stdout and stderr are a terminal (h: help)",
	 0},
	{"no-live", OPT_NO_LIVE, NULL, 0, "Show nothing meanwhile", 0},
	{"quiet", 'q', NULL, 0, "No table at the end and no live view, only errors", 0},
	{"verbose", 'v', NULL, 0, "Say what is done, and what libbpf says", 0},
	{"version", 'V', NULL, 0, "Print the version", -1},
	{"help", 'h', NULL, 0, "Print this help", -1},
	{0},
};

struct command {
	struct audit_options audit;
	struct audit_part *parts[MAX_PARTS];
	const char **patterns;
	bool quiet;
	enum { LIVE_IF_POSSIBLE, LIVE, NOT_LIVE } live;
	struct audit_part *view;
};

static void add_pattern(struct command *command, const char *pattern, struct argp_state *state)
{
	const size_t n = command->audit.n_patterns;
	const char **more = reallocarray(command->patterns, n + 1, sizeof(*more));

	if (!more) {
		argp_failure(state, 125, ENOMEM, "--usdt");
		return;
	}
	if (!strchr(pattern, ':'))
		argp_error(state, "--usdt %s: say PROVIDER:NAME, such as python:gc__start",
			   pattern);
	command->patterns = more;
	command->patterns[n] = pattern;
	command->audit.n_patterns = n + 1;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct command *command = state->input;

	switch (key) {
	case 'a':
		break;
	case 'o':
		command->audit.output = arg;
		break;
	case 'd':
		if (parse_duration(arg, &command->audit.duration_ns))
			argp_error(state, "-d %s: not a time such as 10s, 5m or 500ms", arg);
		break;
	case OPT_USDT:
		add_pattern(command, arg, state);
		break;
	case OPT_MAX_PROCESSES:
		if (parse_count(arg, 1, MAX_MAX_PROCESSES, &command->audit.max_processes))
			argp_error(state, "--max-processes %s: not a number from 1 to %u", arg,
				   MAX_MAX_PROCESSES);
		break;
	case OPT_CHECKPOINT_LIMIT:
		if (parse_count(arg, 0, UINT32_MAX, &command->audit.checkpoint_limit))
			argp_error(state, "--checkpoint-limit %s: not a number", arg);
		break;
	case OPT_LIVE:
		command->live = LIVE;
		break;
	case OPT_NO_LIVE:
		command->live = NOT_LIVE;
		break;
	case 'q':
		command->quiet = true;
		log_set_level(LOG_QUIET);
		break;
	case 'v':
		log_set_level(LOG_VERBOSE);
		break;
	case 'V':
		printf("qprof-bpf %s\n", QPROF_VERSION);
		exit(0);
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "-a audits what runs already: it takes no command");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "-a",
	.doc = "Who quantizes what on this machine, with how much memory and I/O: every process, "
	       "the jobs among them, their containers and users. Nothing has to be changed in "
	       "them."
	       "\v"
	       "The exit status is 0, also when ^C ends it; 125 if qprof-bpf itself fails.",
};

/* Where lines of a log go to the same terminal, nobody has asked for a screen to be drawn there. */
static bool wants_view(const struct command *command)
{
	if (command->quiet || command->live != LIVE_IF_POSSIBLE)
		return !command->quiet && command->live == LIVE;
	return isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) && log_level() == LOG_NORMAL &&
	       terminal_is_there();
}

/* 0, or -1 and *err. */
static int add_view(struct command *command, bool colour, struct error *err)
{
	struct audit_options *audit = &command->audit;

	if (!wants_view(command))
		return 0;
	command->view = view_part_new(colour, err);
	if (!command->view)
		return command->live == LIVE ? -1 : 0;
	command->parts[audit->n_parts++] = command->view;
	audit->live = true;
	audit->quiet_start = true;
	return 0;
}

int command_audit(int argc, char **argv)
{
	struct command command = {
		.audit = {.output = "audit.yaml", .checkpoint_limit = CHECKPOINT_LIMIT}};
	const char *no_colour = getenv("NO_COLOR");
	const bool colour = !(no_colour && *no_colour);
	struct error err = {0};
	int status;

	argp_err_exit_status = 125;
	argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &command);
	command.audit.patterns = command.patterns;
	command.audit.parts = command.parts;
	if (!command.quiet) {
		command.audit.summary_width = terminal_width(STDERR_FILENO);
		command.audit.summary_colour = isatty(STDERR_FILENO) && colour;
	}
	if (add_view(&command, colour, &err)) {
		log_error("%s", err.text);
		status = 125;
	} else {
		status = audit_run(&command.audit);
	}
	view_part_free(command.view);
	free(command.patterns);
	return status;
}
