/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The .dat of mprof (memory_profiler), for `mprof plot` and `mprof peak`. Its lines:
 *
 *     CMDLINE what was run
 *     MEM MIB UNIXSECS                             the tree, as `mprof run --include-children`
 *     CHLD NUMBER MIB UNIXSECS                     a process by itself; NUMBER is its pid
 *     FUNC NAME MIB UNIXSECS MIB UNIXSECS DEPTH    a phase: its begin, its end
 *     # usage CPUSECS READMIB WRITTENMIB UNIXSECS  what the tree had used by then
 *     # TEXT                                       mprof passes over it, as over all it knows not
 *
 * mprof splits fields at single blanks and lines at every line end that Python knows, so a name has
 * neither.
 */
#include <string.h>

#include "format/ending.h"
#include "format/fields.h"
#include "report/metrics.h"
#include "report/renderer.h"
#include "base/text.h"
#include "base/units.h"

enum { MAX_COMMENT = ENDING_MAX }; /* columns */

/* Any name as one word, never empty. */
static void put_word(FILE *out, const char *name)
{
	const size_t len = strlen(name);
	size_t n;

	if (!len)
		putc_unlocked('_', out);
	for (size_t i = 0; i < len; i += n ? n : 1) {
		uint32_t code = 0;

		n = text_char(name + i, len - i, &code);
		/* Control characters, blanks of all kinds, and line ends beyond ASCII. */
		if (!n || code <= 0x20 || (code >= 0x7f && code <= 0xa0) || code == 0x1680 ||
		    (code >= 0x2000 && code <= 0x200f) || (code >= 0x2028 && code <= 0x202f) ||
		    code == 0x205f || code == 0x3000 || code == 0xfeff)
			putc_unlocked('_', out);
		else
			fwrite_unlocked(name + i, 1, n, out);
	}
}

struct dat {
	FILE *out;
	uint64_t start_ns; /* of the run, since 1970 */
};

static uint64_t start_of(const struct recording *r)
{
	double secs = r->run.started_at;

	if (r->n_steps && r->steps[0].unix_secs > 0)
		secs = r->steps[0].unix_secs - (double)r->steps[0].rel_ns / 1e9;
	return secs > 0 && secs < 1e10 ? (uint64_t)(secs * 1e6) * 1000 : 0;
}

/* " MIB UNIXSECS" with the decimals of the file. printf of a double would take most of the time. */
static void put_at(const struct dat *d, uint64_t bytes, uint64_t ns)
{
	char text[UNITS_TEXT_MAX];

	putc_unlocked(' ', d->out);
	fputs_unlocked(units_mb(text, bytes), d->out);
	putc_unlocked(' ', d->out);
	fputs_unlocked(units_secs(text, d->start_ns + ns, 6), d->out);
}

/* An argument may be a script of several lines: these show. */
static void put_argument(FILE *out, const char *text)
{
	char safe[MAX_COMMENT * TEXT_TERMINAL_GROWTH + 1];

	text_for_terminal(safe, sizeof(safe), text, MAX_COMMENT);
	put_word(out, safe);
}

static void put_command(const struct dat *d, const struct recording *r)
{
	fputs("CMDLINE ", d->out);
	for (size_t i = 0; i < r->run.n_command; i++) {
		if (i)
			putc_unlocked(' ', d->out);
		put_argument(d->out, r->run.command[i]);
	}
	for (size_t i = 0; i < r->run.n_pids; i++)
		fprintf(d->out, "%s%u", i ? "," : "-p ", r->run.pids[i]);
	putc_unlocked('\n', d->out);
}

static void put_points(const struct dat *d, const struct recording *r)
{
	for (size_t i = 0; i < r->n_points; i++) {
		fputs_unlocked("MEM", d->out);
		put_at(d, recording_point_rss(&r->points[i]), r->points[i].time_ns);
		putc_unlocked('\n', d->out);
	}
}

static void put_process_points(const struct dat *d, const struct recording *r)
{
	for (size_t i = 0; i < r->n_tracks; i++) {
		const struct recording_track_point *point = &r->tracks[i];

		fprintf(d->out, "CHLD %u", r->processes[point->process].pid);
		put_at(d, point->file + point->anon + point->shmem, point->time_ns);
		putc_unlocked('\n', d->out);
	}
}

static void put_phases(const struct dat *d, const struct recording *r,
		       const struct render_options *options)
{
	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (!render_wants_phase(options, phase))
			continue;
		fputs("FUNC ", d->out);
		put_word(d->out, phase->shown);
		put_at(d, phase->start_rss, phase->start_ns);
		put_at(d, phase->end_rss, phase->start_ns + phase->duration_ns);
		fprintf(d->out, " %u\n", phase->depth);
	}
}

/* A text on one line, as mprof sees lines. */
static void put_comment(const struct dat *d, const char *lead, const char *text)
{
	char safe[MAX_COMMENT * TEXT_TERMINAL_GROWTH + 1];

	text_for_terminal(safe, sizeof(safe), text, MAX_COMMENT);
	fprintf(d->out, "# %s%s\n", lead, safe);
}

static void put_metric(const struct dat *d, const struct profile_metric *metric)
{
	char text[UNITS_TEXT_MAX];

	fputs("# metric ", d->out);
	put_word(d->out, metric->name);
	fprintf(d->out, " %s", metric_text(text, metric));
}

static void put_curve(const struct dat *d, const struct recording *r)
{
	char cpu[UNITS_TEXT_MAX], read[UNITS_TEXT_MAX], written[UNITS_TEXT_MAX],
		text[UNITS_TEXT_MAX];

	for (size_t i = 0; i < r->n_curve; i++) {
		const struct profile_usage *usage = &r->curve[i].usage;

		fprintf(d->out, "# usage %s %s %s %s\n",
			units_secs(cpu, usage->cpu_ns, SECS_DECIMALS),
			units_mb(read, usage->io_read), units_mb(written, usage->io_write),
			units_secs(text, d->start_ns + r->curve[i].time_ns, 6));
	}
}

/* What mprof has no place for. */
static void put_comments(const struct dat *d, const struct recording *r)
{
	struct ending ending;
	char text[UNITS_TEXT_MAX];

	recording_ending(r, &ending);
	if (ending.is_bad)
		put_comment(d, "", ending.text);
	for (size_t i = 0; i < r->n_summaries; i++) {
		put_metric(d, &r->summaries[i]);
		putc_unlocked('\n', d->out);
	}
	for (size_t i = 0; i < r->n_steps; i++) {
		const struct recording_step *step = &r->steps[i];

		for (size_t k = 0; k < step->n_metrics; k++) {
			put_metric(d, &step->metrics[k]);
			fprintf(d->out, " %s\n", units_secs(text, d->start_ns + step->rel_ns, 6));
		}
	}
	put_curve(d, r);
	for (size_t i = 0; i < r->n_definitions; i++)
		put_comment(d, "definition ", r->definitions[i]);
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	const struct dat d = {.out = out, .start_ns = start_of(r)};

	(void)err;
	put_command(&d, r);
	put_points(&d, r);
	put_process_points(&d, r);
	put_phases(&d, r, options);
	put_comments(&d, r);
	return 0;
}

const struct renderer renderer_mprof = {
	.name = "mprof",
	.extension = ".dat",
	.what = "for mprof plot and mprof peak of memory_profiler",
	.render = render,
};
