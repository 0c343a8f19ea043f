/* SPDX-License-Identifier: GPL-2.0-only */
/* audit.c - qprof-bpf -a: the options. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/audit.h"
#include "cli/audit_options.h"
#include "cli/commands.h"
#include "run/live.h"
#include "base/log.h"
#include "audit/notify.h"
#include "cli/parse.h"
#include "cli/patterns.h"

enum { OPT_USDT = 0x800, OPT_MAX_PROCESSES, OPT_CHECKPOINT_LIMIT, OPT_COUNT_SPLICE };

enum {
	MAX_MAX_PROCESSES = 262144,
	CHECKPOINT_LIMIT = 100000, /* a process, a second */
	MAX_LISTENERS = 8,
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
	{"count-splice", OPT_COUNT_SPLICE, NULL, 0,
	 "Count splice and its like and native AIO also where only probes in libc and libaio can: "
	 "each fork of the machine takes longer meanwhile",
	 0},
	{"quiet", 'q', NULL, 0, "No table at the end and no live view, only errors", 0},
	{"verbose", 'v', NULL, 0, "Say what is done, and what libbpf says", 0},
	{"version", 'V', NULL, 0, "Print the version", -1},
	{"help", 'h', NULL, 0, "Print this help", -1},
	{0},
};

struct command {
	struct audit_options audit;
	struct listener *listeners[MAX_LISTENERS];
	struct rules_options rules;
	struct metrics_choice metrics;
	struct event_options events;
	struct view_options view;
	const char **patterns;
	bool quiet;
};

static void check_options(struct command *command, struct argp_state *state)
{
	const char *output = command->audit.output;

	if (output && !strcmp(output, "-") && command->events.wanted && !command->events.path)
		argp_error(state, "-o -: the events go to stdout; name a file, or --events-file");
	if (!output && !command->events.wanted)
		command->audit.output = "audit.yaml";
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct command *command = state->input;

	switch (key) {
	case ARGP_KEY_INIT: /* in the order of children */
		state->child_inputs[0] = &command->rules;
		state->child_inputs[1] = &command->view;
		state->child_inputs[2] = &command->metrics;
		state->child_inputs[3] = &command->events;
		break;
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
		patterns_add(&command->patterns, &command->audit.n_patterns, arg, state);
		break;
	case OPT_MAX_PROCESSES:
		if (parse_count(arg, 1, MAX_MAX_PROCESSES, &command->audit.max_processes))
			argp_error(state, "--max-processes %s: not a number from 1 to %u", arg,
				   MAX_MAX_PROCESSES);
		break;
	case OPT_COUNT_SPLICE:
		command->audit.count_splice = true;
		break;
	case OPT_CHECKPOINT_LIMIT:
		if (parse_count(arg, 0, UINT32_MAX, &command->audit.checkpoint_limit))
			argp_error(state, "--checkpoint-limit %s: not a number", arg);
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
	case ARGP_KEY_SUCCESS:
		check_options(command, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_child children[] = {
	{&audit_rules_argp, 0, NULL, 0},
	{&audit_view_argp, 0, NULL, 0},
	{&audit_metrics_argp, 0, NULL, 0},
	{&audit_events_argp, 0, NULL, 0},
	{0},
};

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.children = children,
	.args_doc = "-a",
	.doc = "Who quantizes what on this machine, with how much memory and I/O: every process, "
	       "the jobs among them, their containers and users. Nothing has to be changed in "
	       "them."
	       "\v"
	       "The exit status is 0, also when ^C ends it; 125 if qprof-bpf itself fails.",
};

static void add_listener(struct command *command, struct listener *listener)
{
	if (listener)
		command->listeners[command->audit.n_listeners++] = listener;
}

/* 0, or -1 and *err. */
static int make_listeners(struct command *command, struct error *err)
{
	struct listener *listener;

	if (audit_rules_listener(&command->rules, &listener, err))
		return -1;
	add_listener(command, listener);
	if (audit_view_listener(&command->view, &listener, err))
		return -1;
	add_listener(command, listener);
	command->audit.quiet_start = listener != NULL;
	/* Who grows is seen then, and not at the next fork. */
	command->audit.live = command->audit.n_listeners > 0;
	if (audit_metrics_listener(&command->metrics, &listener, err))
		return -1;
	add_listener(command, listener);
	if (audit_events_listener(&command->events, &listener, err))
		return -1;
	add_listener(command, listener);
	add_listener(command,
		     notify_listener_new()); /* the last: it says that all of them are ready */
	return 0;
}

static int run(struct command *command)
{
	struct error err = {0};

	if (!make_listeners(command, &err))
		return capture_audit(&command->audit);
	log_error("%s", err.text);
	return err.status;
}

int command_audit(int argc, char **argv)
{
	struct command command = {
		.audit = {.checkpoint_limit = CHECKPOINT_LIMIT},
		.metrics = audit_metrics_default,
		.events = audit_events_default,
	};
	const char *no_colour = getenv("NO_COLOR");
	const bool colour = !(no_colour && *no_colour);
	int status;

	argp_err_exit_status = 125;
	argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &command);
	command.audit.patterns = command.patterns;
	command.audit.listeners = command.listeners;
	command.view.quiet = command.quiet;
	command.view.colour = colour;
	if (!command.quiet) {
		command.audit.summary_width = terminal_width(STDERR_FILENO);
		command.audit.summary_colour = isatty(STDERR_FILENO) && colour;
	}
	if (command.view.wanted == LIVE_IF_POSSIBLE && command.events.wanted &&
	    !command.events.path)
		command.view.wanted = NOT_LIVE; /* the events have the terminal */
	status = run(&command);
	for (size_t i = 0; i < command.audit.n_listeners; i++)
		command.listeners[i]->free(command.listeners[i]);
	audit_rules_free(&command.rules);
	free(command.patterns);
	return status;
}
