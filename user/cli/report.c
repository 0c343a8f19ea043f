/* SPDX-License-Identifier: GPL-2.0-only */
/* report.c - qprof-bpf report: a finished profile in another form. Needs no privileges. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "run/live.h"
#include "cli/load.h"
#include "base/log.h"
#include "base/open.h"
#include "cli/parse.h"
#include "report/renderer.h"

enum { OPT_SORT = 256, OPT_TOP, OPT_PHASE, OPT_TABLE, OPT_WIDTH };

enum { MAX_TOP = 1000000, MIN_WIDTH = 60, MAX_WIDTH = 512 };

static const struct argp_option options[] = {
	{"format", 'f', "FORMAT", 0, "What to make of the profile:", 0},
	{"output", 'o', "FILE", 0,
	 "Write to FILE (default -, stdout); its name tells the format if -f does not", 0},
	{"sort", OPT_SORT, "KEY", 0,
	 "Order of phases and processes: time (default), peak, delta, duration, read, write, cpu",
	 0},
	{"top", OPT_TOP, "N", 0, "Show at most N phases and N processes", 0},
	{"phase", OPT_PHASE, "PATTERN", 0, "Only phases of that name; *, ? and [...] match", 0},
	{"table", OPT_TABLE, "TABLE", 0,
	 "Of csv: phases (default), processes, timeline, process_timeline or memory_usage", 0},
	{"width", OPT_WIDTH, "COLUMNS", 0, "Of text (default: the terminal's, or 80)", 0},
	{"help", 'h', NULL, 0, "Print this help", -1},
	{0},
};

struct report {
	const char *profile, *output;
	const struct renderer *renderer;
	struct render_options render;
};

static enum report_order parse_order(const char *text, struct argp_state *state)
{
	static const char *const names[] = {"time", "peak",  "delta", "duration",
					    "read", "write", "cpu"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(names[i], text))
			return (enum report_order)i;
	}
	argp_error(state, "--sort %s: not one of time, peak, delta, duration, read, write, cpu",
		   text);
	return REPORT_BY_TIME;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct report *report = state->input;

	switch (key) {
	case 'f':
		report->renderer = renderer_named(arg);
		if (!report->renderer)
			argp_error(state, "-f %s: no such format; --help lists them", arg);
		break;
	case 'o':
		report->output = arg;
		break;
	case OPT_SORT:
		report->render.order = parse_order(arg, state);
		break;
	case OPT_TOP:
		if (parse_count(arg, 1, MAX_TOP, &report->render.top))
			argp_error(state, "--top %s: not a number from 1 to %u", arg, MAX_TOP);
		break;
	case OPT_PHASE:
		report->render.phase = arg;
		break;
	case OPT_TABLE:
		report->render.table = arg;
		break;
	case OPT_WIDTH:
		if (parse_count(arg, MIN_WIDTH, MAX_WIDTH, &report->render.width))
			argp_error(state, "--width %s: not a number from %u to %u", arg, MIN_WIDTH,
				   MAX_WIDTH);
		break;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		break;
	case ARGP_KEY_ARG:
		if (report->profile)
			argp_error(state, "one profile at a time; to compare two: qprof-bpf diff");
		report->profile = arg;
		break;
	case ARGP_KEY_END:
		if (!report->profile)
			argp_error(state, "say which profile: a file, or - for stdin");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* The formats there are, behind the line of -f. */
static char *help_filter(int key, const char *text, void *input)
{
	char *all = NULL;
	size_t len;
	FILE *out;

	(void)input;
	out = key == 'f' ? open_memstream(&all, &len) : NULL;
	if (!out)
		return (char *)text;
	fputs(text, out);
	for (const struct renderer *const *r = renderers; *r; r++)
		fprintf(out, "%s %s (%s)", r == renderers ? "" : ",", (*r)->name, (*r)->what);
	return fclose(out) ? (char *)text : all;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.help_filter = help_filter,
	.args_doc = "PROFILE",
	.doc = "A finished profile, or what there is of one that was cut off, in another form. "
	       "Needs no privileges."
	       "\v"
	       "Exit status 0, or 125 if the profile cannot be read or the report not written.",
};

static int write_report(const struct report *report, const struct recording *r, int fd,
			struct error *err)
{
	FILE *out = fdopen(fd, "w");
	const char *to = strcmp(report->output, "-") ? report->output : "stdout";
	int failed;

	if (!out) {
		close(fd);
		return error_set(err, "cannot write to '%s': %s", to, strerror(errno));
	}
	/* Why a write fails is said by the first that does; some file systems say it at the end. */
	errno = 0;
	failed = report->renderer->render(r, &report->render, out, err);
	if ((ferror(out) | fclose(out)) && !failed)
		failed = error_set(err, "cannot write all of '%s': %s", to,
				   errno ? strerror(errno) : "a write failed");
	return failed;
}

static int make_report(struct report *report, struct error *err)
{
	struct recording r;
	int fd, failed;

	if (load_recording(&r, report->profile, err))
		return -1;
	fd = output_open(report->output, err);
	failed = fd < 0 ? -1 : 0;
	if (!failed && report->renderer->binary && isatty(fd)) {
		failed = error_set(err, "%s is nothing for a terminal: say where to with -o FILE",
				   report->renderer->name);
		close(fd);
	}
	if (!failed) {
		const char *no_colour = getenv("NO_COLOR");
		const bool terminal = isatty(fd);

		report->render.colour = terminal && !(no_colour && *no_colour);
		/* A file may be in a format that cannot say so. */
		if (r.partial && !terminal)
			log_info("%s: %s", report->profile, r.partial_text);
		if (!report->render.width)
			report->render.width = terminal ? terminal_width(fd) : 80;
		failed = write_report(report, &r, fd, err);
	}
	recording_free(&r);
	return failed;
}

int command_report(int argc, char **argv)
{
	struct report report = {.output = "-"};
	struct error err = {0};

	argv[0] = (char[]){"qprof-bpf report"};
	argp_err_exit_status = 125;
	argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &report);
	if (!report.renderer)
		report.renderer = renderer_for_file(report.output);
	if (!report.renderer)
		report.renderer = renderers[0];
	report.render.source = report.profile;
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of write(2) */
	if (make_report(&report, &err)) {
		log_error("%s", err.text);
		return err.status;
	}
	return 0;
}
