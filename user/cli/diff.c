/* SPDX-License-Identifier: GPL-2.0-only */
/* diff.c - qprof-bpf diff: compares two profiles, also as a gate for CI. Needs no privileges. */
#include "report/diff.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/budgets.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "base/log.h"
#include "base/tty.h"
#include "cli/parse.h"

enum { BROKEN = 1, MIN_WIDTH = 60 };

struct limits {
	struct compare_limit *items; /* their texts are malloc'ed */
	size_t n;
};

struct diff_command {
	const char *sides[2];
	struct limits limits;
	struct budgets budgets;
	struct diff diff;
	unsigned int json;
};

static int add_limit(const struct command_option *option, const char *text, struct limits *limits,
		     struct compare_limit limit)
{
	struct compare_limit *more = reallocarray(limits->items, limits->n + 1, sizeof(limit));
	char *words;

	if (!more)
		return -ENOMEM;
	limits->items = more;
	limit.is_percent = !parse_percent(text, &limit.percent);
	if (!limit.is_percent && budgets_amount(limit.metric, text, &limit.amount))
		return -EINVAL;
	if (asprintf(&words, "--%s %s", option->name, text) < 0)
		return -ENOMEM;
	limit.text = words;
	more[limits->n++] = limit;
	return 0;
}

static int parse_limit(const struct command_option *option, const char *text, void *member)
{
	return add_limit(option, text, member,
			 (struct compare_limit){.metric = (enum compare_metric)option->set});
}

/* Bytes, as those of calls. */
static int parse_file_limit(const struct command_option *option, const char *text, void *member)
{
	return add_limit(option, text, member,
			 (struct compare_limit){.metric = COMPARE_IO, .is_for_files = true});
}

/* Its text is the option as the user gave it. */
static int parse_growth(const struct command_option *option, const char *text, void *member)
{
	struct diff *diff = member;
	char *words;

	if (parse_bytes(text, &diff->max_growth) || !diff->max_growth)
		return -EINVAL;
	if (asprintf(&words, "--%s %s", option->name, text) < 0)
		return -ENOMEM;
	free((char *)diff->max_growth_text);
	diff->max_growth_text = words;
	return 0;
}

static const struct choice format_choices[] = {{"text", false}, {"json", true}, {0}};

static const struct command_option options[] = {
	{0, "max-peak-increase", "LIMIT",
	 "Most that a peak may have grown, of the run and of each phase: 5%, 200M", OPT_OWN,
	 INTO(struct diff_command, limits), .set = COMPARE_PEAK, .parse = parse_limit,
	 .wrong = "not a limit such as 5% or 200M"},
	{0, "max-gpu-peak-increase", "LIMIT", "The same of memory on GPUs", OPT_OWN,
	 INTO(struct diff_command, limits), .set = COMPARE_GPU, .parse = parse_limit,
	 .wrong = "not a limit such as 5% or 200M"},
	{0, "max-io-increase", "LIMIT", "The same of bytes read and written through calls", OPT_OWN,
	 INTO(struct diff_command, limits), .set = COMPARE_IO, .parse = parse_limit,
	 .wrong = "not a limit such as 5% or 200M"},
	{0, "max-file-read-increase", "LIMIT",
	 "Most that may have been read from storage of any file more than before (--files): 5%, "
	 "200M",
	 OPT_OWN, INTO(struct diff_command, limits), .parse = parse_file_limit,
	 .wrong = "not a limit such as 5% or 200M"},
	{0, "max-time-increase", "LIMIT", "The same of time: 10%, 2s", OPT_OWN,
	 INTO(struct diff_command, limits), .set = COMPARE_TIME, .parse = parse_limit,
	 .wrong = "not a limit such as 5% or 2s"},
	{0, "max-growth-per-phase", "BYTES",
	 "Most memory that each repeat of a phase may leave behind in NEW (`trends` in its "
	 "profile): 1M",
	 OPT_OWN, INTO(struct diff_command, diff), .parse = parse_growth,
	 .wrong = "not an amount such as 1M"},
	{0, "budget", "BUDGET", "Most that NEW may take: " BUDGETS_HELP, OPT_OWN,
	 INTO(struct diff_command, budgets), .parse = budgets_parse, .wrong = BUDGETS_WRONG},
	{0, "allow-failed", NULL,
	 "Judge runs that failed, were killed or cut off as others: without it, no limit or budget "
	 "holds for them (^C alone is no failure)",
	 OPT_FLAG, INTO(struct diff_command, diff.allow_failed)},
	{0, "all", NULL, "Tell also what did not change", OPT_FLAG,
	 INTO(struct diff_command, diff.all)},
	{'f', "format", "FORMAT", "text (default) or json", OPT_CHOICE,
	 INTO(struct diff_command, json), .choices = format_choices},
	{0, "width", "COLUMNS", "Of text (default: the terminal's, or 80)", OPT_COUNT,
	 INTO(struct diff_command, diff.width), .least = MIN_WIDTH, .most = TTY_MAX_WIDTH},
	{0},
};

static int add_profile(struct diff_command *command, struct comparison *c, enum compare_side side,
		       const char *path, struct error *err)
{
	struct recording r;
	struct ending ending;
	int added;

	if (load_recording(&r, path, err))
		return -1;
	if (side == COMPARE_OLD)
		command->diff.old_partial |= r.partial;
	else
		command->diff.new_partial |= r.partial;
	recording_ending(&r, &ending);
	if (!command->diff.endings[side].is_bad ||
	    (ending.is_failed && !command->diff.endings[side].is_failed))
		command->diff.endings[side] = ending;
	added = comparison_add(c, side, &r);
	if (!added && side == COMPARE_NEW)
		added = diff_note_growth(&command->diff, &r);
	recording_free(&r);
	if (added == -E2BIG)
		return error_set(err, "more than %d profiles on a side", COMPARE_MAX_RUNS);
	return added ? error_set(err, "not enough memory to compare") : 0;
}

/* Commas separate profiles, unless a file has just that name. */
static int add_side(struct diff_command *command, struct comparison *c, enum compare_side side,
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

static int compare(struct diff_command *command, struct error *err)
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

static int diff_main(int argc, char **argv)
{
	struct diff_command command = {0};
	struct diff *diff = &command.diff;
	struct error err = {0};
	int status;

	options_parse(&command_diff, argc, argv, &command);
	diff->old = command.sides[0];
	diff->new = command.sides[1];
	diff->limits = command.limits.items;
	diff->n_limits = command.limits.n;
	diff->budgets = command.budgets.items;
	diff->n_budgets = command.budgets.n;
	diff->colour = tty_colour(STDOUT_FILENO);
	if (!diff->width) /* a narrow terminal wraps */
		diff->width = tty_width(STDOUT_FILENO);
	if (diff->width < MIN_WIDTH)
		diff->width = MIN_WIDTH;
	if (compare(&command, &err)) {
		log_error("%s", err.text);
		status = err.status;
	} else {
		status = diff_is_broken(diff) ? BROKEN : 0;
	}
	for (size_t i = 0; i < command.limits.n; i++)
		free((char *)command.limits.items[i].text);
	free(command.limits.items);
	budgets_free(&command.budgets);
	diff_free_growth(diff);
	free((char *)diff->max_growth_text);
	return status;
}

const struct command command_diff = {
	.name = "diff",
	.title = "qprof-bpf diff",
	.what = "Compare two profiles, or repeats of each",
	.usage = "OLD[,OLD...] NEW[,NEW...]",
	.doc = "Two profiles side by side, phase by phase, matched by name and occurrence. Several "
	       "repeats of a side are told by their medians. Needs no privileges."
	       "\v"
	       "Exit status 0; 1 if a limit or budget is passed, or a run did not end well; 125 if "
	       "a profile cannot be read. "
	       "Percentages count from 1 MiB or 10 ms on, and a change within the spread of "
	       "repeats passes no limit.",
	.tables = (const struct option_table[]){{options, 0}, {0}},
	.arguments = {ARGUMENTS_FILES, .least = 2, .most = 2,
		      .at = offsetof(struct diff_command, sides),
		      .too_few = "say what to compare: OLD and NEW",
		      .too_many = "two sides; several runs of a side with commas between"},
	.run = diff_main,
};
