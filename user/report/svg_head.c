/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/svg_head.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "format/ending.h"
#include "report/markup.h"
#include "report/metrics.h"
#include "report/usage_line.h"

enum {
	HEAD = 54, /* command and peak, in pixels */
	LINE = 18,
	COLUMNS = (WIDTH - 2 * MARGIN) / LETTER,
	METRIC_LINES = 4,
	METRIC_COLUMNS = 40, /* of a name */
};

const struct svg_kind svg_kinds[N_KINDS] = {
	[ANON] = {"anon", "anonymous"},
	[SHMEM] = {"shmem", "shared"},
	[FILES] = {"file", "mapped files"},
	[UNSPLIT] = {"unsplit", "not told apart"},
};

void svg_text(FILE *out, double x, double y, const char *class, const char *text,
	      unsigned int columns)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
	markup_text(out, text, columns);
	fputs("</text>\n", out);
}

/* ---- Lines ---- */

/* Returns NULL if there is no room for a line more. */
static char *add_line(struct svg_head *head, const char *class)
{
	if (head->n == SVG_HEAD_LINES)
		return NULL;
	head->lines[head->n].class = class;
	head->lines[head->n].text[0] = '\0';
	return head->lines[head->n++].text;
}

static void add_text(struct svg_head *head, const char *class, const char *text)
{
	char *line = *text ? add_line(head, class) : NULL;

	if (line)
		snprintf(line, SVG_HEAD_TEXT, "%.*s", SVG_HEAD_TEXT - 1, text);
}

/* The same in as many lines as it takes, each cut at a blank. */
static void add_wrapped(struct svg_head *head, const char *class, const char *text)
{
	while (text_columns(text) > COLUMNS) {
		char line[COLUMNS + 1];
		size_t len = text_whole(text, COLUMNS), end = len;

		while (end && text[end] != ' ')
			end--;
		if (end)
			len = end;
		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		add_text(head, class, line);
		text += len + (text[len] == ' ');
	}
	add_text(head, class, text);
}

#define append(line, ...) snprintf((line) + strlen(line), SVG_HEAD_TEXT - strlen(line), __VA_ARGS__)

/* "loss 0.12 (0.12 to 2.3)". Returns its columns. */
static unsigned int metric_words(char *out, size_t size, const struct reported *metric)
{
	char last[UNITS_TEXT_MAX], lowest[UNITS_TEXT_MAX], highest[UNITS_TEXT_MAX];
	char name[METRIC_COLUMNS * TEXT_TERMINAL_GROWTH + 1], range[3 * UNITS_TEXT_MAX] = "";
	const unsigned int columns =
		text_for_terminal(name, sizeof(name), metric->name, METRIC_COLUMNS);

	metric_text(lowest, &metric->lowest);
	metric_text(highest, &metric->highest);
	if (strcmp(lowest, highest) != 0)
		snprintf(range, sizeof(range), " (%s to %s)", lowest, highest);
	metric_text(last, &metric->last);
	snprintf(out, size, "%s %s%s", name, last, range);
	return columns + 1 + (unsigned int)(strlen(last) + strlen(range));
}

/* As many as fit into a few lines; then how many there are besides. */
static void add_metrics(struct svg_head *head, const struct reported *metrics, size_t n)
{
	static const char more[] = "... and 4294967295 more";
	const size_t last = head->n + METRIC_LINES;
	unsigned int used = 0;
	char *line = NULL;

	for (size_t i = 0; i < n; i++) {
		char words[(METRIC_COLUMNS * TEXT_TERMINAL_GROWTH) + 4 * UNITS_TEXT_MAX];
		const unsigned int columns = metric_words(words, sizeof(words), &metrics[i]) + 3;
		const unsigned int room = COLUMNS - (head->n == last ? sizeof(more) : 0);

		if (line && used + columns > room && head->n == last) {
			append(line, "... and %zu more", n - i);
			return;
		}
		if (!line || used + columns > room) {
			line = add_line(head, "");
			used = 0;
		}
		if (!line)
			return;
		append(line, "%s%s", words, i + 1 < n ? ";  " : "");
		used += columns;
	}
}

int svg_head_make(struct svg_head *head, const struct recording *r)
{
	char usage[USAGE_LINE_MAX];
	struct ending ending;
	size_t n;
	struct reported *metrics = reported_metrics(r, &n);

	if (!metrics)
		return -1;
	recording_ending(r, &ending);
	add_wrapped(head, "peak", ending.text);
	add_text(head, "dim", r->partial ? r->partial_text : "");
	add_wrapped(head, "dim", usage_line(usage, &r->totals));
	add_metrics(head, metrics, n);
	free(metrics);
	return 0;
}

double svg_head_height(const struct svg_head *head)
{
	return HEAD + (double)head->n * LINE;
}

/* ---- The picture's head ---- */

static void put_command(const struct recording *r, FILE *out)
{
	const struct recording_run *run = &r->run;

	fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"head\">", MARGIN, MARGIN + 14);
	for (size_t i = 0; i < run->n_command && i < 8; i++) {
		fputs(i ? " " : "", out);
		markup_text(out, run->command[i], 100 / (run->n_command < 4 ? 2 : 6));
	}
	if (!run->n_command)
		fputs("Memory and I/O", out);
	fputs("</text>\n", out);
}

/* The peak in a sentence: when, in which phase, of what kind, in which process. */
static void put_answer(const struct recording *r, FILE *out)
{
	const struct recording_peak *peak = &r->peak;
	const uint64_t parts[] = {[ANON] = peak->anon, [SHMEM] = peak->shmem, [FILES] = peak->file};
	const uint64_t sum = peak->anon + peak->shmem + peak->file;
	char size[UNITS_TEXT_MAX];
	int most = ANON;

	fprintf(out,
		"<text x=\"%d\" y=\"%d\"><tspan class=\"big peak\">Peak %s</tspan><tspan dx=\"8\">",
		MARGIN, MARGIN + 42, units_bytes_for_people(size, r->totals.peak_rss));
	markup_peak_time(out, r, 40);
	for (int kind = ANON; kind <= FILES; kind++)
		most = parts[kind] > parts[most] ? kind : most;
	if (sum)
		fprintf(out, "; %.0f %% %s", 100 * (double)parts[most] / (double)sum,
			svg_kinds[most].name);
	if (sum && peak->n_shares) {
		const struct recording_share *share = &peak->shares[0];
		const struct recording_process *process = &r->processes[share->process];

		fprintf(out, "; %.0f %% in process %u ",
			100 * (double)(share->anon + share->shmem + share->file) / (double)sum,
			process->pid);
		markup_text(out, process->comm, 20);
	}
	fputs("</tspan></text>\n", out);
}

void svg_head_put(const struct svg_head *head, const struct recording *r, FILE *out)
{
	put_command(r, out);
	put_answer(r, out);
	for (size_t i = 0; i < head->n; i++)
		svg_text(out, MARGIN, MARGIN + HEAD + 6 + (double)i * LINE, head->lines[i].class,
			 head->lines[i].text, COLUMNS);
}
