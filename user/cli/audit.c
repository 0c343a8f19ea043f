/* SPDX-License-Identifier: GPL-2.0-only */
/* audit.c - qprof-bpf -a: the options. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/files/job_files_listener.h"
#include "audit/limits/job_limits.h"
#include "audit/notify.h"
#include "audit/report/audit_report.h"
#include "audit/stacks/job_stacks_listener.h"
#include "audit/view/view.h"
#include "base/invoker.h"
#include "base/tty.h"
#include "capture/audit.h"
#include "cli/audit_options.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "service/service.h"
#include "service/talk.h"

enum { CHECKPOINT_LIMIT = 100000 }; /* of a process in a second */

struct audit_command {
	struct audit_options audit;
	struct common_options common;
	struct rules_options rules;
	struct metrics_choice metrics;
	struct event_options events;
	struct view_options view;
	struct listener *live; /* the view; NULL: there is none */
	bool as_root;
	bool base_names;   /* of files of jobs */
	const char *serve; /* the path of a socket */
	const char *of;	   /* the jobs that --stacks samples */
};

static const struct command_option options[] = {
	{'a', "all", NULL, "Audit every process of the machine", .type = OPT_NOTHING},
	{'o', "output", "FILE",
	 "Write the report to FILE (default audit.yaml; - is stdout); a report that is there "
	 "becomes FILE.old",
	 OPT_PATH, INTO(struct audit_command, common.output)},
	{0, "max-processes", "N",
	 "Track at most N processes at a time, and keep N with those that have ended (default "
	 "32768, or as many as fit in 64 MiB of the kernel's memory); more are counted",
	 OPT_COUNT, INTO(struct audit_command, common.capture.engine.max_processes), .least = 1,
	 .most = 262144},
	{0, "max-jobs", "N",
	 "Have at most N jobs at a time (default and most: 1023), of one user half of them at "
	 "most; "
	 "checkpoints of others are counted",
	 OPT_COUNT, INTO(struct audit_command, common.capture.engine.max_jobs), .least = 1,
	 .most = WIRE_MAX_JOBS - 1},
	{0, "max-probes", "N",
	 "Have at most N probes at a time (default and most: 16384), of one user but root, and of "
	 "one file, half of them at most",
	 OPT_COUNT, INTO(struct audit_command, common.capture.max_probes), .least = 16,
	 .most = 16384},
	{0, "max-files", "N",
	 "Remember at most N files that were searched for probes (default 100000)", OPT_COUNT,
	 INTO(struct audit_command, common.capture.max_files), .least = 16, .most = 1000000},
	{0, "checkpoint-limit", "N",
	 "Take at most N checkpoints of a process in a second (default 100000; 0: no limit); more "
	 "are counted",
	 OPT_COUNT, INTO(struct audit_command, common.capture.engine.checkpoint_limit)},
	{0, "serve", "PATH",
	 "Let users profile what is their own without root: they come to a socket at PATH "
	 "(default " TALK_PATH ")",
	 OPT_PATH, INTO(struct audit_command, serve), .if_none = TALK_PATH},
	{0, "files", NULL,
	 "Say which files each job read from storage and wrote, and with --serve let users have "
	 "--files, too; this looks at each request for storage of the machine, and at each page "
	 "that becomes dirty",
	 OPT_FLAG, INTO(struct audit_command, common.capture.engine.files)},
	{0, "no-paths", NULL, "With --files: name files of jobs without their directories",
	 OPT_FLAG, INTO(struct audit_command, base_names)},
	{0, "stacks", "WHAT",
	 "Sample which functions make memory of jobs grow (memory; meant without WHAT), use CPU "
	 "time (cpu), or both (memory,cpu): the largest of each job that has ended",
	 OPT_CHOICES, INTO(struct audit_command, common.capture.engine.stacks),
	 .choices = stacks_choices, .if_none = "memory"},
	{0, "of", "PATTERN",
	 "The jobs that --stacks samples, as 'llama*': those of such a rule or recipe, or whose "
	 "first process has such a name (default: all)",
	 OPT_PATH, INTO(struct audit_command, of), .wrong = "not a name of jobs"},
	{0, "as-root", NULL, "Under sudo, write files as root, not as the invoking user", OPT_FLAG,
	 INTO(struct audit_command, as_root)},
	{'q', "quiet", NULL, "No table at the end and no live view, only errors", OPT_SET,
	 INTO(struct audit_command, common.log_level), .set = LOG_QUIET},
	{0},
};

/* It comes first: the files of a job are there when others tell of its end. Returns 0, or -1 and
 * *err. */
static int make_files(struct audit_command *command, struct error *err)
{
	struct capture_options *capture = &command->common.capture;
	struct listener *listener;

	if (!capture->engine.files)
		return 0;
	listener = job_files_listener_new(command->base_names);
	if (!listener)
		return error_set(err, "out of memory");
	if (command->live)
		view_show_files(command->live, listener);
	listener->next = capture->listeners;
	capture->listeners = listener;
	return 0;
}

/* It comes first, as files do. Returns 0, or -1 and *err. */
static int make_stacks(struct audit_command *command, struct error *err)
{
	struct capture_options *capture = &command->common.capture;
	const unsigned int samples = capture->engine.stacks;
	struct listener *listener = samples ? job_stacks_listener_new(samples, command->of) : NULL;

	if (!samples)
		return 0;
	if (!listener)
		return error_set(err, "out of memory");
	listener->next = capture->listeners;
	capture->listeners = listener;
	return 0;
}

/* The listeners that options ask for. Returns 0, or -1 and *err. */
static int make_chosen(struct audit_command *command, struct error *err)
{
	struct capture_options *capture = &command->common.capture;
	struct listener *listener;

	if (audit_rules_listener(&command->rules, &listener, &capture->marker, err))
		return -1;
	capture->engine.listens = capture->marker->listens;
	capture->engine.watches = capture->engine.listens;
	listener_append(&capture->listeners, listener);
	if (audit_view_listener(&command->view, &listener, err))
		return -1;
	listener_append(&capture->listeners, listener);
	command->live = listener;
	command->audit.quiet_start = listener != NULL;
	/* Growth shows as it happens, not only at the next fork. */
	capture->engine.wake_points = capture->listeners != NULL;
	listener = job_limits_listener_new(&command->common.warn_at);
	if (!listener)
		return error_set(err, "out of memory");
	listener_append(&capture->listeners, listener);
	command->metrics.metrics.limits = listener;
	command->metrics.metrics.waits = capture->engine.waits;
	if (audit_metrics_listener(&command->metrics, &listener, err))
		return -1;
	listener_append(&capture->listeners, listener);
	if (audit_events_listener(&command->events, &listener, err))
		return -1;
	listener_append(&capture->listeners, listener);
	return 0;
}

/* Returns 0, or -1 and *err. */
static int make_service(struct audit_command *command, struct error *err)
{
	struct capture_options *capture = &command->common.capture;
	struct listener *service;

	if (!command->serve)
		return 0;
	service = service_listener_new(command->serve);
	if (!service)
		return error_set(err, "out of memory");
	listener_append(&capture->listeners, service);
	capture->engine.serves = true;
	capture->engine.wake_points = true; /* a run warns of limits as they come near */
	capture->engine.curves = true;
	return 0;
}

/* The report is last: it has the warnings of the others. Returns 0, or -1 and *err. */
static int make_listeners(struct audit_command *command, struct error *err)
{
	struct listener **listeners = &command->common.capture.listeners;
	const char *output = command->common.output;
	const bool quiet = command->common.log_level == LOG_QUIET;
	struct listener *report, *table;

	if (make_service(command, err) || make_chosen(command, err) || make_files(command, err) ||
	    make_stacks(command, err))
		return -1;
	listener_append(listeners, notify_listener_new());
	report = output ? report_listener_new(output) : NULL;
	listener_append(listeners, report);
	table = quiet ? NULL
		      : report_table_listener_new(tty_width(STDERR_FILENO),
						  tty_colour(STDERR_FILENO));
	listener_append(listeners, table);
	return (output && !report) || (!quiet && !table) ? error_set(err, "out of memory") : 0;
}

/* Decides what depends on more than one option. Returns 0, or -1 and *err. */
static int settle(struct audit_command *command, struct error *err)
{
	struct common_options *common = &command->common;
	const bool events_to_stdout = command->events.format && !command->events.path;

	if (command->of && !common->capture.engine.stacks)
		return error_set(err, "--of is for what --stacks samples: say --stacks, "
				      "--stacks=cpu or --stacks=memory,cpu as well");
	if (common->output && !strcmp(common->output, "-") && events_to_stdout)
		return error_set(err, "-o -: the events go to stdout; name a file, or "
				      "--events-file");
	if (!common->output && !command->events.format && !command->events.path)
		common->output = "audit.yaml";
	command->view.quiet = common->log_level == LOG_QUIET;
	command->view.colour = tty_may_colour();
	if (command->view.wanted == LIVE_IF_POSSIBLE && events_to_stdout)
		command->view.wanted = NOT_LIVE; /* the events have the terminal */
	return 0;
}

static int run(struct audit_command *command)
{
	struct error err = {0};
	int status;

	if (settle(command, &err) || make_listeners(command, &err)) {
		listeners_close(&command->common.capture.listeners);
		if (command->common.capture.marker)
			command->common.capture.marker->close(command->common.capture.marker);
		log_error("%s", err.text);
		return err.status;
	}
	command->audit.capture = common_capture(&command->common);
	status = capture_audit(&command->audit);
	if (!status)
		chosen_recipes_tell(&command->rules.recipes);
	return status;
}

static int audit_main(int argc, char **argv)
{
	struct audit_command command = {
		.common = {.log_level = LOG_NORMAL,
			   .warn_at = WARN_AT,
			   .capture.engine.checkpoint_limit = CHECKPOINT_LIMIT},
		.metrics = audit_metrics_default,
		.events = audit_events_default,
	};
	int status;

	options_parse(&command_audit, argc, argv, &command);
	log_set_level(command.common.log_level);
	if (command.as_root)
		invoker_forget();
	status = run(&command);
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
			{chosen_recipes_options, offsetof(struct audit_command, rules.recipes)},
			{audit_view_options, offsetof(struct audit_command, view)},
			{audit_metrics_options, offsetof(struct audit_command, metrics)},
			{audit_events_options, offsetof(struct audit_command, events)},
			{0}},
	.arguments = {ARGUMENTS_NONE,
		      .too_many = "-a audits what runs already: it takes no command"},
	.run = audit_main,
};
