/* SPDX-License-Identifier: GPL-2.0-only */
/* audit.c - qprof-bpf -a: the options. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/notify.h"
#include "base/tty.h"
#include "capture/audit.h"
#include "cli/audit_options.h"
#include "cli/commands.h"
#include "cli/common.h"

enum {
	CHECKPOINT_LIMIT = 100000, /* of a process in a second */
	MAX_LISTENERS = 8,
};

struct audit_command {
	struct audit_options audit;
	struct common_options common;
	struct listener *listeners[MAX_LISTENERS];
	struct rules_options rules;
	struct metrics_choice metrics;
	struct event_options events;
	struct view_options view;
};

static const struct command_option options[] = {
	{'a', "all", NULL, "Audit every process of the machine", .type = OPT_NOTHING},
	{'o', "output", "FILE", "Write the report to FILE (default audit.yaml; - is stdout)",
	 OPT_PATH, INTO(struct audit_command, common.output)},
	{0, "max-processes", "N",
	 "Track at most N processes at a time, and keep N with those that have ended (default "
	 "65536); more are counted",
	 OPT_COUNT, INTO(struct audit_command, common.max_processes), .least = 1, .most = 262144},
	{0, "checkpoint-limit", "N",
	 "Take at most N checkpoints of a process in a second (default 100000; 0: no limit); more "
	 "are counted",
	 OPT_COUNT, INTO(struct audit_command, audit.checkpoint_limit)},
	{'q', "quiet", NULL, "No table at the end and no live view, only errors", OPT_SET,
	 INTO(struct audit_command, common.log_level), .set = LOG_QUIET},
	{0},
};

static void add_listener(struct audit_command *command, struct listener *listener)
{
	if (listener)
		command->listeners[command->audit.n_listeners++] = listener;
}

/* Returns 0, or -1 and *err. */
static int make_listeners(struct audit_command *command, struct error *err)
{
	struct listener *listener;

	if (audit_rules_listener(&command->rules, &listener, err))
		return -1;
	add_listener(command, listener);
	if (audit_view_listener(&command->view, &listener, err))
		return -1;
	add_listener(command, listener);
	command->audit.quiet_start = listener != NULL;
	/* Growth shows as it happens, not only at the next fork. */
	command->audit.live = command->audit.n_listeners > 0;
	if (audit_metrics_listener(&command->metrics, &listener, err))
		return -1;
	add_listener(command, listener);
	if (audit_events_listener(&command->events, &listener, err))
		return -1;
	add_listener(command, listener);
	add_listener(command, notify_listener_new()); /* last: it tells that all others are ready */
	return 0;
}

/* Hands what the options say to the capture. Returns 0, or -1 and *err. */
static int fill_in(struct audit_command *command, struct error *err)
{
	const struct common_options *common = &command->common;
	struct audit_options *audit = &command->audit;
	const bool events_to_stdout = command->events.format && !command->events.path;

	if (common->output && !strcmp(common->output, "-") && events_to_stdout)
		return error_set(err, "-o -: the events go to stdout; name a file, or "
				      "--events-file");
	audit->output = common->output;
	if (!audit->output && !command->events.format && !command->events.path)
		audit->output = "audit.yaml";
	audit->duration_ns = common->duration_ns;
	audit->max_processes = common->max_processes;
	audit->count_splice = common->count_splice;
	audit->patterns = common->patterns.items;
	audit->n_patterns = common->patterns.n;
	audit->listeners = command->listeners;
	command->view.quiet = common->log_level == LOG_QUIET;
	command->view.colour = tty_may_colour();
	if (command->view.wanted == LIVE_IF_POSSIBLE && events_to_stdout)
		command->view.wanted = NOT_LIVE; /* the events have the terminal */
	if (command->view.quiet)
		return 0;
	audit->summary_width = tty_width(STDERR_FILENO);
	audit->summary_colour = tty_colour(STDERR_FILENO);
	return 0;
}

static int audit_main(int argc, char **argv)
{
	struct audit_command command = {
		.audit = {.checkpoint_limit = CHECKPOINT_LIMIT},
		.common = {.log_level = LOG_NORMAL},
		.metrics = audit_metrics_default,
		.events = audit_events_default,
	};
	struct error err = {0};
	int status;

	options_parse(&command_audit, argc, argv, &command);
	log_set_level(command.common.log_level);
	if (fill_in(&command, &err) || make_listeners(&command, &err)) {
		log_error("%s", err.text);
		status = err.status;
	} else {
		status = capture_audit(&command.audit);
	}
	for (size_t i = 0; i < command.audit.n_listeners; i++)
		command.listeners[i]->free(command.listeners[i]);
	audit_rules_free(&command.rules);
	free(command.common.patterns.items);
	return status;
}

const struct command command_audit = {
	.name = "audit",
	.title = "qprof-bpf",
	.what = "Audit every process of the machine",
	.usage = "-a",
	.doc = "Who quantizes what on this machine, with how much memory and I/O: every process, "
	       "the jobs among them, their containers and users. Nothing has to be changed in "
	       "them."
	       "\v"
	       "The exit status is 0, also when ^C ends it; 125 if qprof-bpf itself fails.",
	.tables =
		(const struct option_table[]){
			{options, 0},
			{common_options, offsetof(struct audit_command, common)},
			{audit_rules_options, offsetof(struct audit_command, rules)},
			{audit_view_options, offsetof(struct audit_command, view)},
			{audit_metrics_options, offsetof(struct audit_command, metrics)},
			{audit_events_options, offsetof(struct audit_command, events)},
			{0}},
	.arguments = {ARGUMENTS_NONE,
		      .too_many = "-a audits what runs already: it takes no command"},
	.run = audit_main,
};
