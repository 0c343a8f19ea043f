/* SPDX-License-Identifier: GPL-2.0-only */
/* report.c - qprof-bpf report: renders a finished profile. Needs no privileges. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/judge.h"
#include "base/tty.h"
#include "cli/load.h"
#include "base/log.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "format/ending.h"
#include "report/renderer.h"

enum { MIN_WIDTH = 60, UNKNOWN = UINT_MAX };

struct report {
	const char *profile, *output;
	unsigned int format; /* index of renderers, or UNKNOWN */
	const struct renderer *renderer;
	struct render_options render;
	struct judge judge;
	int status; /* what it came to */
};

static struct choice format_choice(size_t i)
{
	const struct renderer *r = renderers[i];

	return r ? (struct choice){r->name, (unsigned int)i} : (struct choice){0};
}

static const char *format_help(size_t i)
{
	return renderers[i]->what;
}

static const struct choice by_choices[] = {{"name", true}, {0}};

static const struct choice order_choices[] = {
	{"time", REPORT_BY_TIME},   {"peak", REPORT_BY_PEAK},
	{"delta", REPORT_BY_DELTA}, {"duration", REPORT_BY_DURATION},
	{"read", REPORT_BY_READ},   {"write", REPORT_BY_WRITE},
	{"cpu", REPORT_BY_CPU},	    {0}};

static struct choice table_choice(size_t i)
{
	return (struct choice){csv_table(i), (unsigned int)i};
}

static const struct command_option options[] = {
	{'f', "format", "FORMAT", "What to make of the profile:", OPT_CHOICE,
	 INTO(struct report, format), .choice = format_choice, .choice_help = format_help},
	{'o', "output", "FILE",
	 "Write to FILE (default -, stdout); its extension tells the format if -f does not",
	 OPT_PATH, INTO(struct report, output)},
	{0, "sort", "KEY",
	 "Order of phases and processes: time (default), peak, delta, duration, read, write, cpu",
	 OPT_CHOICE, INTO(struct report, render.order), .choices = order_choices},
	{0, "by", "WHAT", "name: phases of one name are one, how often and how long they took",
	 OPT_CHOICE, INTO(struct report, render.by_name), .choices = by_choices},
	{0, "top", "N", "Show at most N phases and N processes", OPT_COUNT,
	 INTO(struct report, render.top), .least = 1, .most = 1000000},
	{0, "phase", "PATTERN", "Only phases of that name; *, ? and [...] match", OPT_TEXT,
	 INTO(struct report, render.phase)},
	{0, "table", "TABLE",
	 "Of csv: phases (default), outside_phases, processes, timeline, process_timeline, "
	 "usage_timeline, gpu_timeline, memory_usage, totals, metrics or metric_definitions",
	 OPT_CHOICE, INTO(struct report, render.table), .choice = table_choice},
	{0, "fits", "AMOUNT",
	 "Judge instead: does the run, and each phase, fit into AMOUNT (16G) of RAM and swap",
	 OPT_SIZE, INTO(struct report, judge.fits), .least = 1},
	{0, "fits-gpu", "AMOUNT",
	 "The same of GPUs: does what the run had on each fit into one with AMOUNT (24G)", OPT_SIZE,
	 INTO(struct report, judge.fits_gpu), .least = 1},
	{0, "budget", "BUDGET", "Judge instead: most that the run may take: " BUDGETS_HELP, OPT_OWN,
	 INTO(struct report, judge.budgets), .parse = budgets_parse, .wrong = BUDGETS_WRONG},
	{0, "allow-failed", NULL,
	 "Judge a run that failed, was killed or cut off as others: without it, it fits into "
	 "nothing for sure, and no budget holds",
	 OPT_FLAG, INTO(struct report, judge.allow_failed)},
	{0, "width", "COLUMNS", "Of text (default: the terminal's, or 80)", OPT_COUNT,
	 INTO(struct report, render.width), .least = MIN_WIDTH, .most = TTY_MAX_WIDTH},
	{0},
};

static int judge(struct report *report, const struct recording *r, FILE *out, struct error *err)
{
	report->judge.phase = report->render.phase;
	report->judge.width = report->render.width;
	report->judge.colour = report->render.colour;
	report->status = judge_write(&report->judge, r, out);
	return report->status < 0 ? error_set(err, "not enough memory to judge") : 0;
}

static int write_report(struct report *report, const struct recording *r, int fd, struct error *err)
{
	FILE *out = fdopen(fd, "w");
	const char *to = strcmp(report->output, "-") ? report->output : "stdout";
	int failed;

	if (!out) {
		close(fd);
		return error_set(err, "cannot write to '%s': %s", to, strerror(errno));
	}
	/* The first write that fails says why; some file systems say it when the file closes. */
	errno = 0;
	if (judge_is_asked(&report->judge))
		failed = judge(report, r, out, err);
	else
		failed = report->renderer->render(r, &report->render, out, err);
	if ((ferror(out) | fclose(out)) && !failed)
		failed = error_set(err, "cannot write all of '%s': %s", to,
				   errno ? strerror(errno) : "a write failed");
	return failed;
}

/* The format of a file may have no place for it. */
static void warn_of_ending(const char *profile, const struct recording *r)
{
	char safe[ENDING_MAX * TEXT_TERMINAL_GROWTH + 1];
	struct ending ending;

	recording_ending(r, &ending);
	text_for_terminal(safe, sizeof(safe), ending.text, ENDING_MAX);
	if (r->partial)
		log_info("%s: %s", profile, r->partial_text);
	else if (ending.is_bad)
		log_info("%s: %s", profile, safe);
}

static int make_report(struct report *report, struct error *err)
{
	struct recording r;
	char phases[UNITS_TEXT_MAX];
	int fd, failed;

	if (load_recording(&r, report->profile, err))
		return -1;
	if (!render_has_phase(&report->render, &r)) {
		error_set(err, "%s: none of its %s matches '%s'", report->profile,
			  units_counted(phases, sizeof(phases), r.n_phases, "phase(s)"),
			  report->render.phase);
		recording_free(&r);
		return -1;
	}
	fd = output_open(report->output, err);
	failed = fd < 0 ? -1 : 0;
	if (!failed && report->renderer->binary && isatty(fd)) {
		failed = error_set(err, "%s is nothing for a terminal: say where to with -o FILE",
				   report->renderer->name);
		close(fd);
	}
	if (!failed) {
		const bool terminal = isatty(fd);

		report->render.colour = tty_colour(fd);
		if (!terminal)
			warn_of_ending(report->profile, &r);
		if (!report->render.width)
			report->render.width = tty_width(fd);
		failed = write_report(report, &r, fd, err);
	}
	recording_free(&r);
	return failed;
}

/* A judgement is told in two formats. */
static int choose_judgement(struct report *report, struct error *err)
{
	const char *format = report->renderer->name;

	report->judge.json = !strcmp(format, "json");
	if (!judge_is_asked(&report->judge) || report->judge.json || !strcmp(format, "text"))
		return 0;
	return error_set(err, "--fits, --fits-gpu and --budget have no %s: use text or json",
			 format);
}

static int report_main(int argc, char **argv)
{
	struct report report = {.profile = DEFAULT_PROFILE, .output = "-", .format = UNKNOWN};
	struct error err = {0};

	options_parse(&command_report, argc, argv, &report);
	report.renderer = report.format == UNKNOWN ? renderer_for_file(report.output, &err)
						   : renderers[report.format];
	report.render.source = report.profile;
	signal(SIGXFSZ, SIG_IGN); /* write(2) fails instead where a file may not grow */
	if (!report.renderer || choose_judgement(&report, &err) || make_report(&report, &err)) {
		log_error("%s", err.text);
		report.status = err.status;
	}
	budgets_free(&report.judge.budgets);
	return report.status;
}

const struct command command_report = {
	.name = "report",
	.title = "qprof-bpf report",
	.what = "Render a finished profile in another form",
	.usage = "[PROFILE]",
	.doc = "A finished profile, or what there is of one that was cut off, in another form. "
	       "Without PROFILE, that is " DEFAULT_PROFILE ", where a run writes it. Needs no "
	       "privileges."
	       "\v"
	       "Exit status 0, or 125 if the profile cannot be read, no phase matches --phase, or "
	       "the report cannot be written. With --fits or --fits-gpu: 0, it fits; 1, it does "
	       "not; 3, the "
	       "amount is between what the run needs at least and at most, or it did not end well. "
	       "With --budget: 1 if a budget is passed, or the run did not end well.",
	.tables = (const struct option_table[]){{options, 0}, {0}},
	.arguments = {ARGUMENTS_FILES, .most = 1, .at = offsetof(struct report, profile),
		      .too_many = "one profile at a time; to compare two: qprof-bpf diff"},
	.run = report_main,
};
