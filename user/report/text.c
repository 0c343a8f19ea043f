/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The report for people: the run, its peak, each phase and process, and what is in doubt. Text that
 * programs chose is made safe for a terminal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/names.h"
#include "format/quality.h"
#include "format/quantities.h"
#include "format/headroom.h"
#include "format/trending.h"
#include "format/waits.h"
#include "report/select.h"
#include "report/text_report.h"
#include "report/usage_line.h"

enum {
	TOP = 20, /* phases and processes, unless --top says */
	MAX_WARNINGS = 10,
	MAX_NAME = MAX_WIDTH,
};

void text_wrapped(const struct text_report *t, const char *lead, const char *text)
{
	table_wrapped(&t->table, lead, text);
}

void text_title(const struct text_report *t, const char *title)
{
	fputc('\n', t->table.out);
	table_tone(&t->table, BOLD);
	fprintf(t->table.out, "%s\n", title);
	table_tone(&t->table, PLAIN);
}

void text_more(const struct text_report *t, size_t n, const char *what)
{
	char text[UNITS_TEXT_MAX];

	if (n > t->top)
		fprintf(t->table.out, "%*s... and %s (--top)\n", INDENT, "",
			units_counted(text, sizeof(text), n - t->top, what));
}

void text_percent(char out[UNITS_TEXT_MAX], uint64_t part, uint64_t whole)
{
	const double share = whole ? 100.0 * (double)part / (double)whole : 0;

	snprintf(out, UNITS_TEXT_MAX, share > 0 && share < 1 ? "<1 %%" : "%.0f %%", share);
}

/* ---- Head ---- */

static void put_ending(const struct text_report *t)
{
	if (!t->ending->is_bad)
		return;
	table_tone(&t->table, WARNING);
	text_wrapped(t, "! ", t->ending->text);
	table_tone(&t->table, PLAIN);
}

/* Returns -1 when out of memory. */
static int put_command(const struct text_report *t)
{
	const struct recording_run *run = &t->r->run;
	char *line = NULL;
	size_t len;
	FILE *out = open_memstream(&line, &len);

	if (!out)
		return -1;
	for (size_t i = 0; i < run->n_command; i++)
		fprintf(out, "%s%s", i ? " " : "", run->command[i]);
	for (size_t i = 0; i < run->n_pids; i++)
		fprintf(out, "%s%u", i ? ", " : "attached to ", run->pids[i]);
	if (!run->n_command && !run->n_pids && t->options->source)
		fputs(t->options->source, out);
	if (fclose(out) || !line) {
		free(line);
		return -1;
	}
	table_tone(&t->table, BOLD);
	table_name(&t->table, line, t->table.width, false);
	table_tone(&t->table, PLAIN);
	fputc('\n', t->table.out);
	free(line);
	return 0;
}

static void put_when_and_where(const struct text_report *t)
{
	const struct recording *r = t->r;
	const time_t started = (time_t)r->run.started_at;
	char line[512], when[64] = "", duration[UNITS_TEXT_MAX];
	struct tm utc;

	if (started && gmtime_r(&started, &utc))
		strftime(when, sizeof(when), " on %Y-%m-%d %H:%M:%S UTC", &utc);
	snprintf(line, sizeof(line), "ran %s%s%s%.100s%s%.100s",
		 units_time_for_people(duration, r->totals.duration_ns), when,
		 r->run.hostname ? ", " : "", r->run.hostname ? r->run.hostname : "",
		 r->run.kernel ? ", Linux " : "", r->run.kernel ? r->run.kernel : "");
	fprintf(t->table.out, "%*s", INDENT, "");
	table_name(&t->table, line, t->table.width - INDENT, false);
	fputc('\n', t->table.out);
}

static void put_partial(const struct text_report *t)
{
	if (!t->r->partial)
		return;
	table_tone(&t->table, WARNING);
	text_wrapped(t, "  ! ", t->r->partial_text);
	table_tone(&t->table, PLAIN);
}

static void put_totals(const struct text_report *t)
{
	char line[USAGE_LINE_MAX];

	text_wrapped(t, "", usage_line(line, &t->r->totals));
}

static void put_waits(const struct text_report *t)
{
	char sentence[WAITS_TEXT_MAX];

	if (waits_sentence(sentence, t->r))
		text_wrapped(t, "Slow: ", sentence);
}

/* Beyond the first few nobody reads them; JSON has all. */
static void put_trends(const struct text_report *t)
{
	enum { SHOWN = 5 };
	char sentence[TRENDING_TEXT_MAX];

	for (size_t i = 0; i < t->r->n_trends && i < SHOWN; i++)
		text_wrapped(t, i ? "       " : "Grows: ",
			     trending_sentence(sentence, t->r, &t->r->trends[i]));
}

static void put_headroom(const struct text_report *t)
{
	char sentence[HEADROOM_TEXT_MAX];

	if (headroom_sentence(sentence, t->r))
		text_wrapped(t, "Closest ", sentence);
}

/* ---- Quality ---- */

static void put_doubt(const struct text_report *t, const char *line, bool *any_said)
{
	if (!*any_said)
		text_title(t, "What is missing or in doubt");
	*any_said = true;
	text_wrapped(t, "  ! ", line);
}

static void put_quality(const struct text_report *t)
{
	const struct recording_quality *q = &t->r->quality;
	bool any_said = false;
	char line[1024];

	for (size_t i = 0; i < q->n_counts; i++) {
		const char *means = quality_means(q->counts[i].key);

		if (!quality_is_worth_saying(q->counts[i].key, q->counts[i].count))
			continue;
		units_counted(line, sizeof(line), q->counts[i].count,
			      means ? means : q->counts[i].key);
		put_doubt(t, line, &any_said);
	}
	for (size_t i = 0; i < q->n_warnings && i < MAX_WARNINGS; i++) {
		snprintf(line, sizeof(line), "%.400s: %.400s", q->warnings[i].what,
			 q->warnings[i].why);
		put_doubt(t, line, &any_said);
	}
	table_more(&t->table, q->n_warnings, MAX_WARNINGS, "more warning(s)", "profile");
}

/* ---- The page ---- */

static int put_page(const struct text_report *t)
{
	size_t n;
	const struct recording_phase **phases = select_all_time(t->r, t->options, &n);
	int failed;

	put_ending(t);
	if (!phases || put_command(t)) {
		free(phases);
		return -1;
	}
	put_when_and_where(t);
	put_partial(t);
	text_peak(t);
	failed = text_over_time(t);
	text_needs(t);
	put_totals(t);
	put_waits(t);
	put_trends(t);
	put_headroom(t);
	if (!t->options->by_name)
		text_phases(t, phases, n);
	if (t->options->by_name && text_by_name(t))
		failed = -1;
	text_windows(t);
	if (text_stacks(t) || text_ranks(t))
		failed = -1;
	text_files(t);
	text_spaces(t);
	text_disks(t);
	if (text_processes(t) || text_metrics(t))
		failed = -1;
	if (!failed)
		put_quality(t);
	free(phases);
	return failed;
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	struct recording_needs *needs = recording_needs_new(r);
	struct ending ending;
	const struct text_report t = {
		.table = {.out = out,
			  .width = table_width(options->width, MAX_WIDTH),
			  .colour = options->colour,
			  .min_name = 20,
			  .max_name = 60},
		.r = r,
		.options = options,
		.peak_phase = recording_peak_phase(r),
		.needs = needs,
		.names = by_name_new(r),
		.ending = &ending,
		.cpu_error_ns = recording_cpu_error(r),
		.top = options->top ? options->top : TOP,
	};
	int failed;

	recording_ending(r, &ending);
	failed = needs && t.names ? put_page(&t) : -1;
	if (failed)
		error_set(err, "not enough memory for the report");
	recording_needs_free(needs);
	by_name_free(t.names);
	return failed;
}

const struct renderer renderer_text = {
	.name = "text",
	.extension = ".txt",
	.what = "tables for people",
	.render = render,
};
