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
#include "metrics_part.h"
#include "parse.h"

enum {
	OPT_USDT = 256,
	OPT_MAX_PROCESSES,
	OPT_CHECKPOINT_LIMIT,
	OPT_LISTEN,
	OPT_METRICS_FILE,
	OPT_METRICS_INTERVAL,
	OPT_METRICS_LABELS,
	OPT_MAX_SERIES,
};

enum {
	MAX_MAX_PROCESSES = 262144,
	CHECKPOINT_LIMIT = 100000, /* a process, a second */
	MAX_PARTS = 8,
	METRICS_INTERVAL_SECS = 15,
	MIN_SERIES = 40, /* of a few label sets, for half of it is one user's */
	MAX_SERIES = 1000000,
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
	{"listen", OPT_LISTEN, "[ADDRESS:]PORT", 0,
	 "Serve metrics for Prometheus at /metrics (address: 127.0.0.1 unless given)", 0},
	{"metrics-file", OPT_METRICS_FILE, "FILE.prom", 0,
	 "Write metrics to FILE.prom, for the textfile collector of node_exporter", 0},
	{"metrics-interval", OPT_METRICS_INTERVAL, "TIME", 0,
	 "How often the file is written (default 15s)", 0},
	{"metrics-labels", OPT_METRICS_LABELS, "LABELS", 0,
	 "Labels of processes: of command, container, job and pid (default command,container,job)",
	 0},
	{"max-series", OPT_MAX_SERIES, "N", 0,
	 "Have at most N series of processes, jobs and phases (default 10000); the rest is summed",
	 0},
	{"quiet", 'q', NULL, 0, "No table at the end, only errors", 0},
	{"verbose", 'v', NULL, 0, "Say what is done, and what libbpf says", 0},
	{"version", 'V', NULL, 0, "Print the version", -1},
	{"help", 'h', NULL, 0, "Print this help", -1},
	{0},
};

struct command {
	struct audit_options audit;
	struct audit_part *parts[MAX_PARTS];
	struct metrics_options metrics;
	struct exporter_address listen;
	const char **patterns;
	bool quiet;
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

static error_t parse_metrics_option(struct command *command, int key, char *arg,
				    struct argp_state *state)
{
	unsigned int n;

	switch (key) {
	case OPT_LISTEN:
		if (exporter_parse_address(arg, &command->listen))
			argp_error(state,
				   "--listen %s: say a port, or a numeric address with one, such "
				   "as 9435, 0.0.0.0:9435 or [::1]:9435",
				   arg);
		command->metrics.listen = &command->listen;
		break;
	case OPT_METRICS_FILE:
		command->metrics.file = arg;
		break;
	case OPT_METRICS_INTERVAL:
		if (parse_duration(arg, &command->metrics.interval_ns) ||
		    command->metrics.interval_ns < 100000000)
			argp_error(state,
				   "--metrics-interval %s: not a time of at least 100ms, such as "
				   "15s or 1m",
				   arg);
		break;
	case OPT_METRICS_LABELS:
		if (metrics_parse_labels(arg, &command->metrics.labels))
			argp_error(state,
				   "--metrics-labels %s: not some of command,container,job,pid",
				   arg);
		break;
	case OPT_MAX_SERIES:
		if (parse_count(arg, MIN_SERIES, MAX_SERIES, &n))
			argp_error(state, "--max-series %s: not a number from %u to %u", arg,
				   MIN_SERIES, MAX_SERIES);
		command->metrics.max_series = n;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
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
		return parse_metrics_option(command, key, arg, state);
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

int command_audit(int argc, char **argv)
{
	struct command command = {
		.audit = {.output = "audit.yaml", .checkpoint_limit = CHECKPOINT_LIMIT},
		.metrics = {.interval_ns = METRICS_INTERVAL_SECS * 1000000000ull,
			    .labels = METRIC_USUAL_LABELS}};
	struct audit_part *metrics = NULL;
	const char *no_colour = getenv("NO_COLOR");
	int status;

	argp_err_exit_status = 125;
	argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &command);
	command.audit.patterns = command.patterns;
	command.audit.parts = command.parts;
	if (!command.quiet) {
		command.audit.summary_width = terminal_width(STDERR_FILENO);
		command.audit.summary_colour = isatty(STDERR_FILENO) && !(no_colour && *no_colour);
	}
	if (command.metrics.file || command.metrics.listen) {
		metrics = metrics_part_new(&command.metrics);
		if (!metrics) {
			log_error("out of memory");
			return 125;
		}
		command.parts[command.audit.n_parts++] = metrics;
	}
	status = audit_run(&command.audit);
	metrics_part_free(metrics);
	free(command.patterns);
	return status;
}
