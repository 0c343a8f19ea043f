/* SPDX-License-Identifier: GPL-2.0-only */
/* diff.c - qprof-bpf diff: two profiles side by side, and a gate for CI. Needs no privileges. */
#include "report/diff.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "run/live.h"
#include "cli/load.h"
#include "base/log.h"
#include "cli/parse.h"

enum { OPT_PEAK = 256, OPT_IO, OPT_TIME, OPT_BUDGET, OPT_ALL, OPT_WIDTH };

enum { BROKEN = 1, MAX_LIMITS = 64, MIN_WIDTH = 60, MAX_WIDTH = 512 };

static const struct argp_option options[] = {
	{"max-peak-increase", OPT_PEAK, "LIMIT", 0,
	 "Most that a peak may have grown, of the run and of each phase: 5%, 200M", 0},
	{"max-io-increase", OPT_IO, "LIMIT", 0, "Likewise, bytes read and written through calls",
	 0},
	{"max-time-increase", OPT_TIME, "LIMIT", 0, "Likewise, time: 10%, 2s", 0},
	{"budget", OPT_BUDGET, "[PHASE.]METRIC=AMOUNT", 0,
	 "Most that NEW may take, such as Calibration.peak=20G or time=10m; METRIC is peak, end, "
	 "need, io, time or cpu, PHASE a name or pattern (repeatable)",
	 0},
	{"all", OPT_ALL, NULL, 0, "Tell also what did not change", 0},
	{"format", 'f', "FORMAT", 0, "text (default) or json", 0},
	{"width", OPT_WIDTH, "COLUMNS", 0, "Of text (default: the terminal's, or 80)", 0},
	{"help", 'h', NULL, 0, "Print this help", -1},
	{0},
};

struct command {
	char *sides[2];
	struct compare_limit limits[MAX_LIMITS];
	struct diff_budget budgets[MAX_LIMITS];
	char *copies[MAX_LIMITS]; /* of the arguments that budgets are cut out of */
	struct diff diff;
	bool json;
};

static int parse_amount(enum compare_metric metric, const char *text, uint64_t *amount)
{
	return compare_metrics[metric].is_time ? parse_duration(text, amount)
					       : parse_bytes(text, amount);
}

static void add_limit(struct command *command, enum compare_metric metric, const char *option,
		      char *arg, struct argp_state *state)
{
	struct compare_limit *limit = &command->limits[command->diff.n_limits];

	if (command->diff.n_limits == MAX_LIMITS)
		argp_error(state, "more than %d limits", MAX_LIMITS);
	*limit = (struct compare_limit){.metric = metric, .text = arg};
	limit->is_percent = !parse_percent(arg, &limit->percent);
	if (!limit->is_percent && parse_amount(metric, arg, &limit->amount))
		argp_error(state, "%s %s: not a limit such as 5%% or %s", option, arg,
			   compare_metrics[metric].is_time ? "2s" : "200M");
	if (asprintf(&command->copies[command->diff.n_limits], "%s %s", option, arg) < 0)
		argp_failure(state, 125, ENOMEM, "%s", option);
	limit->text = command->copies[command->diff.n_limits++];
}

static bool find_metric(const char *name, enum compare_metric *metric)
{
	for (size_t i = 0; i < COMPARE_METRICS; i++) {
		if (!strcmp(compare_metrics[i].name, name)) {
			*metric = (enum compare_metric)i;
			return true;
		}
	}
	return false;
}

/* [PHASE.]METRIC=AMOUNT; a name may have dots and equal signs itself, so both are the last ones. */
static void add_budget(struct command *command, char *arg, struct argp_state *state)
{
	struct diff_budget *budget = &command->budgets[command->diff.n_budgets];
	char *phase = strdup(arg);
	char *equals = phase ? strrchr(phase, '=') : NULL;
	char *dot;

	if (!phase)
		argp_failure(state, 125, ENOMEM, "--budget");
	if (command->diff.n_budgets == MAX_LIMITS)
		argp_error(state, "more than %d budgets", MAX_LIMITS);
	*budget = (struct diff_budget){.text = arg};
	if (equals)
		*equals = '\0';
	dot = equals ? strrchr(phase, '.') : NULL;
	if (dot)
		*dot = '\0';
	if (!equals || !find_metric(dot ? dot + 1 : phase, &budget->metric) ||
	    parse_amount(budget->metric, equals + 1, &budget->amount))
		argp_error(state,
			   "--budget %s: not a budget such as Calibration.peak=20G, time=10m", arg);
	budget->phase = dot ? phase : NULL;
	if (!dot)
		free(phase);
	command->diff.n_budgets++;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct command *command = state->input;

	switch (key) {
	case OPT_PEAK:
		add_limit(command, COMPARE_PEAK, "--max-peak-increase", arg, state);
		break;
	case OPT_IO:
		add_limit(command, COMPARE_IO, "--max-io-increase", arg, state);
		break;
	case OPT_TIME:
		add_limit(command, COMPARE_TIME, "--max-time-increase", arg, state);
		break;
	case OPT_BUDGET:
		add_budget(command, arg, state);
		break;
	case OPT_ALL:
		command->diff.all = true;
		break;
	case 'f':
		command->json = !strcmp(arg, "json");
		if (!command->json && strcmp(arg, "text"))
			argp_error(state, "-f %s: not one of text, json", arg);
		break;
	case OPT_WIDTH:
		if (parse_count(arg, MIN_WIDTH, MAX_WIDTH, &command->diff.width))
			argp_error(state, "--width %s: not a number from %u to %u", arg, MIN_WIDTH,
				   MAX_WIDTH);
		break;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			argp_error(state, "two sides; several runs of a side with commas between");
		command->sides[state->arg_num] = arg;
		break;
	case ARGP_KEY_END:
		if (!command->sides[1])
			argp_error(state, "say what to compare: OLD and NEW");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "OLD[,OLD...] NEW[,NEW...]",
	.doc = "Two profiles side by side, phase by phase, matched by name and occurrence. Several "
	       "repeats of a side are told by their medians. Needs no privileges."
	       "\v"
	       "Exit status 0; 1 if a limit or budget is passed; 125 if a profile cannot be read. "
	       "Percentages count from 1 MiB or 10 ms on, and a change within the spread of "
	       "repeats passes no limit.",
};

static int add_profile(struct command *command, struct comparison *c, enum compare_side side,
		       const char *path, struct error *err)
{
	struct recording r;
	int added;

	if (load_recording(&r, path, err))
		return -1;
	if (side == COMPARE_OLD)
		command->diff.old_partial |= r.partial;
	else
		command->diff.new_partial |= r.partial;
	added = comparison_add(c, side, &r);
	recording_free(&r);
	if (added == -E2BIG)
		return error_set(err, "more than %d profiles on a side", COMPARE_MAX_RUNS);
	return added ? error_set(err, "not enough memory to compare") : 0;
}

/* Commas are between profiles, unless there is a file of just that name. */
static int add_side(struct command *command, struct comparison *c, enum compare_side side,
		    struct error *err)
{
	const char *names = command->sides[side];
	char *copy, *rest;
	int failed = 0;

	if (!access(names, F_OK))
		return add_profile(command, c, side, names, err);
	copy = rest = strdup(names);
	if (!copy)
		return error_set(err, "not enough memory to compare");
	while (rest && !failed)
		failed = add_profile(command, c, side, strsep(&rest, ","), err);
	free(copy);
	return failed;
}

static int compare(struct command *command, struct error *err)
{
	struct diff *d = &command->diff;
	struct comparison *c = comparison_new();
	int failed = c ? 0 : -1;

	d->c = c;
	for (int side = COMPARE_OLD; side <= COMPARE_NEW && !failed; side++)
		failed = add_side(command, c, side, err);
	if (!failed && diff_judge(d))
		failed = -1;
	if (!failed && command->json)
		diff_json(d, stdout);
	else if (!failed)
		diff_text(d, stdout);
	if (failed && !err->text[0])
		error_set(err, "not enough memory to compare");
	errno = 0;
	if (!failed && (fflush(stdout) || ferror(stdout)))
		failed = error_set(err, "cannot write to stdout: %s",
				   errno ? strerror(errno) : "a write failed");
	free(d->breaches);
	comparison_free(c);
	return failed;
}

int command_diff(int argc, char **argv)
{
	const char *no_colour = getenv("NO_COLOR");
	struct command command = {0};
	struct error err = {0};
	int status;

	argv[0] = (char[]){"qprof-bpf diff"};
	argp_err_exit_status = 125;
	argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &command);
	command.diff.old = command.sides[0];
	command.diff.new = command.sides[1];
	command.diff.limits = command.limits;
	command.diff.budgets = command.budgets;
	command.diff.colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
	if (!command.diff.width) /* a narrow terminal wraps */
		command.diff.width = isatty(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : 80;
	if (command.diff.width < MIN_WIDTH)
		command.diff.width = MIN_WIDTH;
	if (compare(&command, &err)) {
		log_error("%s", err.text);
		status = err.status;
	} else {
		status = diff_is_broken(&command.diff) ? BROKEN : 0;
	}
	for (size_t i = 0; i < command.diff.n_limits; i++)
		free(command.copies[i]);
	for (size_t i = 0; i < command.diff.n_budgets; i++)
		free((char *)command.budgets[i].phase);
	return status;
}
