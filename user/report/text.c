/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The report for people: what the peak was, then each phase and process. Everything that a program
 * chose itself is made safe for a terminal first.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/quality.h"
#include "report/renderer.h"
#include "report/select.h"
#include "base/text.h"
#include "base/units.h"

enum {
	TOP = 20,	/* phases and processes if --top does not say */
	TOP_SHARES = 3, /* processes named at the peak */
	MAX_WARNINGS = 10,
	MAX_INDENT = 8, /* of nested phases */
	CELL = 10,
	MIN_NAME = 20, /* columns that a name has at least */
	MAX_CELLS = 6,
	MIN_COLUMNS = 60, /* as the width may be */
	MAX_COLUMNS = 512,
	INDENT = 2,
};

struct text {
	FILE *out;
	const struct recording *r;
	const struct render_options *options;
	unsigned int width, top;
	const struct recording_phase *peak_phase;
};

enum tone { PLAIN, BOLD, WARNING };

static void tone(const struct text *t, enum tone tone)
{
	static const char *const escapes[] = {"\x1b[0m", "\x1b[1m", "\x1b[33m"};

	if (t->options->colour)
		fputs(escapes[tone], t->out);
}

/* Text of a program, at most columns wide, then blanks up to there if fill. */
static void put_name(const struct text *t, const char *name, unsigned int columns, bool fill)
{
	char safe[MAX_COLUMNS * TEXT_TERMINAL_GROWTH + 1];
	unsigned int used;

	columns = columns < MAX_COLUMNS ? columns : MAX_COLUMNS;
	used = text_for_terminal(safe, sizeof(safe), name, columns);
	fprintf(t->out, "%s%*s", safe, fill ? (int)(columns - used) : 0, "");
}

/* Text of a program in as many lines as it takes: "lead" before the first, blanks before the
 * others.
 */
static void put_wrapped(const struct text *t, const char *lead, const char *text)
{
	char safe[MAX_COLUMNS * TEXT_TERMINAL_GROWTH + 1];
	const int indent = (int)strlen(lead);
	const int room = (int)t->width - indent;
	const char *at = safe;

	text_for_terminal(safe, sizeof(safe), text, MAX_COLUMNS);
	while (*at) {
		int len = (int)strlen(at), next;

		if (len > room) {
			for (len = room; len > 0 && at[len] != ' '; len--)
				;
			len = len ? len : room;
		}
		/* Not within a character: bytes that go on with one begin with 10. */
		while (len > 1 && ((unsigned char)at[len] & 0xc0) == 0x80)
			len--;
		fprintf(t->out, "%*s%.*s\n", indent, at == safe ? lead : "", len, at);
		for (next = len; at[next] == ' '; next++)
			;
		at += next;
	}
}

static void put_title(const struct text *t, const char *title)
{
	fputc('\n', t->out);
	tone(t, BOLD);
	fputs(title, t->out);
	tone(t, PLAIN);
}

static void put_more(const struct text *t, size_t n, const char *what)
{
	if (n > t->top)
		fprintf(t->out, "%*s... and %zu more %s (--top)\n", INDENT, "", n - t->top, what);
}

/* ---- Tables: a name that takes what is left, and cells ---- */

struct cells {
	char text[MAX_CELLS][UNITS_TEXT_MAX];
	unsigned int n;
};

static char *next_cell(struct cells *cells)
{
	return cells->text[cells->n++];
}

/* Of a narrow table the last ones give way to the names. */
static unsigned int shown_cells(const struct text *t, const struct cells *cells)
{
	const unsigned int room = (t->width - INDENT - MIN_NAME) / CELL;

	return room < cells->n ? room : cells->n;
}

static unsigned int name_columns(const struct text *t, const struct cells *cells)
{
	const unsigned int left = t->width - INDENT - shown_cells(t, cells) * CELL;

	/* Numbers are to be near their names. */
	return left > 60 ? 60 : left;
}

static void put_cells(const struct text *t, const struct cells *cells)
{
	for (unsigned int i = 0; i < shown_cells(t, cells); i++)
		fprintf(t->out, "%*s", CELL, cells->text[i]);
	fputc('\n', t->out);
}

static void put_line(const struct text *t, const char *name, unsigned int indent,
		     const struct cells *cells)
{
	indent = indent < MAX_INDENT ? indent : MAX_INDENT;
	fprintf(t->out, "%*s", (int)(INDENT + indent), "");
	put_name(t, name, name_columns(t, cells) - indent, true);
	put_cells(t, cells);
}

/* titles end in NULL; the first is that of the names. */
static void put_titles(const struct text *t, const char *const *titles)
{
	struct cells cells = {.n = 0};

	for (const char *const *title = titles + 1; *title; title++)
		snprintf(next_cell(&cells), UNITS_TEXT_MAX, "%s", *title);
	fputc('\n', t->out);
	tone(t, BOLD);
	fprintf(t->out, "%-*s", (int)(INDENT + name_columns(t, &cells)), titles[0]);
	put_cells(t, &cells);
	tone(t, PLAIN);
}

static void percent(char out[UNITS_TEXT_MAX], uint64_t part, uint64_t whole)
{
	const double share = whole ? 100.0 * (double)part / (double)whole : 0;

	snprintf(out, UNITS_TEXT_MAX, share > 0 && share < 1 ? "<1 %%" : "%.0f %%", share);
}

/* ---- Head ---- */

static void put_command(const struct text *t)
{
	const struct recording_run *run = &t->r->run;
	char *line = NULL;
	size_t len;
	FILE *out = open_memstream(&line, &len);

	if (!out)
		return;
	for (size_t i = 0; i < run->n_command; i++)
		fprintf(out, "%s%s", i ? " " : "", run->command[i]);
	for (size_t i = 0; i < run->n_pids; i++)
		fprintf(out, "%s%u", i ? ", " : "attached to ", run->pids[i]);
	if (!run->n_command && !run->n_pids && t->options->source)
		fputs(t->options->source, out);
	fclose(out);
	if (line) {
		tone(t, BOLD);
		put_name(t, line, t->width, false);
		tone(t, PLAIN);
		fputc('\n', t->out);
	}
	free(line);
}

static void put_when_and_where(const struct text *t)
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
	fprintf(t->out, "%*s", INDENT, "");
	put_name(t, line, t->width - INDENT, false);
	fputc('\n', t->out);
}

static void put_partial(const struct text *t)
{
	if (!t->r->partial)
		return;
	tone(t, WARNING);
	put_wrapped(t, "  ! ", t->r->partial_text);
	tone(t, PLAIN);
}

/* ---- The peak ---- */

struct kind {
	const char *name;
	uint64_t bytes;
};

enum { N_KINDS = 3 };

static void sort_kinds(struct kind *kinds)
{
	for (size_t i = 1; i < N_KINDS; i++) {
		for (size_t j = i; j > 0 && kinds[j].bytes > kinds[j - 1].bytes; j--) {
			const struct kind swap = kinds[j];

			kinds[j] = kinds[j - 1];
			kinds[j - 1] = swap;
		}
	}
}

static uint64_t share_rss(const struct recording_share *share)
{
	return share->file + share->anon + share->shmem;
}

/* The command line without the directory of its program: columns are few. */
static void process_text(char *out, size_t size, const struct recording_process *process)
{
	const char *text = process->cmdline && *process->cmdline ? process->cmdline : process->comm;
	const char *slash = memrchr(text, '/', strcspn(text, " "));

	snprintf(out, size, "%u %s", process->pid, slash ? slash + 1 : text);
}

static void put_part(const struct text *t, uint64_t bytes, uint64_t of, const char *what)
{
	char text[UNITS_TEXT_MAX], share[UNITS_TEXT_MAX];

	percent(share, bytes, of);
	fprintf(t->out, "%*s%10s %5s  ", INDENT, "", units_bytes_for_people(text, bytes), share);
	put_name(t, what, t->width - INDENT - 18, false);
	fputc('\n', t->out);
}

static void put_kinds(const struct text *t)
{
	static const char *const means[] = {"anon: heap, stacks, private copies",
					    "file: pages of mapped files",
					    "shmem: shared memory, tmpfs"};
	const struct recording_peak *peak = &t->r->peak;
	struct kind kinds[N_KINDS] = {
		{means[0], peak->anon}, {means[1], peak->file}, {means[2], peak->shmem}};
	const uint64_t sum = peak->anon + peak->file + peak->shmem;

	sort_kinds(kinds);
	for (size_t i = 0; i < N_KINDS; i++) {
		if (kinds[i].bytes)
			put_part(t, kinds[i].bytes, sum, kinds[i].name);
	}
	if (peak->swap)
		put_part(t, peak->swap, 0, "swap, beside it");
}

static void put_shares(const struct text *t)
{
	const struct recording_peak *peak = &t->r->peak;
	const uint64_t sum = peak->anon + peak->file + peak->shmem;
	char name[MAX_COLUMNS];
	uint64_t rest = 0;

	for (size_t i = 0; i < peak->n_shares; i++) {
		if (i >= TOP_SHARES) {
			rest += share_rss(&peak->shares[i]);
			continue;
		}
		process_text(name, sizeof(name), &t->r->processes[peak->shares[i].process]);
		put_part(t, share_rss(&peak->shares[i]), sum, name);
	}
	if (peak->n_shares <= TOP_SHARES)
		return;
	snprintf(name, sizeof(name), "%zu other processes", peak->n_shares - TOP_SHARES);
	put_part(t, rest, sum, name);
}

/* In which phase that was; if in none, after which. */
static void put_where(const struct text *t, const struct recording_phase *phase, uint64_t ns)
{
	const char *words;

	phase = recording_where(t->r, ns, phase, &words);
	fputs(words, t->out);
	if (phase)
		put_name(t, phase->name, t->width - 26 - (unsigned int)strlen(words), false);
}

/* Where memory got that high is often more of an answer than where it was highest. */
static void put_plateau(const struct text *t, uint64_t peak_ns)
{
	const uint64_t ns = recording_plateau_ns(t->r);
	const struct recording_phase *phase = recording_phase_at(t->r, ns);
	char when[UNITS_TEXT_MAX];

	if (ns >= peak_ns || phase == t->peak_phase)
		return;
	fprintf(t->out, "%*s99 %% of it first at %s", INDENT, "", units_time_for_people(when, ns));
	put_where(t, phase, ns);
	fputc('\n', t->out);
}

static void put_peak(const struct text *t)
{
	const struct recording *r = t->r;
	char peak[UNITS_TEXT_MAX], when[UNITS_TEXT_MAX];
	uint64_t ns;
	const bool is_known = recording_peak_time(r, &ns);

	fputc('\n', t->out);
	tone(t, BOLD);
	units_time_for_people(when, ns);
	fprintf(t->out, "Peak %s%s%s", units_bytes_for_people(peak, r->totals.peak_rss),
		is_known ? " at " : "; the file does not say when, its highest step is at ", when);
	if (is_known)
		put_where(t, t->peak_phase, ns);
	tone(t, PLAIN);
	fputc('\n', t->out);
	put_plateau(t, ns);
	if (!r->peak.has)
		return;
	put_kinds(t);
	put_shares(t);
}

/* ---- Will it fit ---- */

static void put_fit(const struct text *t, const struct recording_needs *needs)
{
	char line[256], needed[UNITS_TEXT_MAX], files[UNITS_TEXT_MAX], gpu[UNITS_TEXT_MAX];
	char hugetlb[UNITS_TEXT_MAX];
	struct recording_need need;

	if (recording_need(needs, 0, UINT64_MAX, &need)) {
		snprintf(line, sizeof(line),
			 "Needs at least %s (anon, shmem and what is in swap); up to %s of mapped "
			 "files beside it can be dropped and read again",
			 units_bytes_for_people(needed, need.needed),
			 units_bytes_for_people(files, need.files));
		put_wrapped(t, "", line);
	}
	if (t->r->totals.peak_hugetlb)
		fprintf(t->out, "Hugetlb memory beside it: %s or more\n",
			units_bytes_for_people(hugetlb, t->r->totals.peak_hugetlb));
	if (t->r->totals.gpu_peak)
		fprintf(t->out, "GPU memory: peak %s\n",
			units_bytes_for_people(gpu, t->r->totals.gpu_peak));
}

/* ---- Memory over time, in a line ---- */

static uint64_t highest_between(const struct recording *r, uint64_t from, uint64_t to, size_t *at)
{
	uint64_t high = *at ? recording_point_rss(&r->points[*at - 1]) : 0;

	for (; *at < r->n_points && (r->points[*at].time_ns < to || to == UINT64_MAX); (*at)++) {
		const uint64_t rss = recording_point_rss(&r->points[*at]);

		if (rss > high || r->points[*at].time_ns == from)
			high = rss > high ? rss : high;
	}
	return high;
}

static void put_line_of_memory(const struct text *t)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	const struct recording *r = t->r;
	const uint64_t end = r->totals.duration_ns, peak = r->totals.peak_rss;
	const unsigned int columns = t->width - INDENT > 100 ? 100 : t->width - INDENT;
	size_t at = 0;

	if (!end || !peak || r->n_points < 2)
		return;
	fprintf(t->out, "%*s", INDENT, "");
	for (unsigned int i = 0; i < columns; i++) {
		const uint64_t from = end / columns * i;
		const uint64_t to = i + 1 == columns ? UINT64_MAX : end / columns * (i + 1);
		const uint64_t high = highest_between(r, from, to, &at);
		const double part = (double)high / (double)peak;

		fputs(bars[part >= 1 ? 7 : (unsigned int)(part * 8)], t->out);
	}
	fputc('\n', t->out);
}

/* ---- Phases ---- */

static void phase_text(char *out, size_t size, const struct recording_phase *phase)
{
	const bool gap = phase->kind == PROFILE_PHASE_GAP;

	snprintf(out, size, "%.300s%s%.300s%s", phase->name, gap && phase->to ? " -> " : "",
		 gap && phase->to ? phase->to : "", phase->closed ? "" : " (open)");
}

/* "  4.   12 s  Calibration (620 ms)        [+256 MiB]  peak 258 MiB ← peak" */
static void put_phase(const struct text *t, const struct recording_phase *phase)
{
	enum { NUMBER = 5, TIME = 7, DELTA = 12, PEAK = 8, WIDE = 90 };
	/* Columns are few: the last word gives way first. */
	const char *const mark = t->width < WIDE ? " ←" : " ← peak";
	const unsigned int fixed = NUMBER + TIME + 2 + DELTA + sizeof("  peak ") - 1 + PEAK +
				   (t->width < WIDE ? 2 : 7);
	const size_t number = (size_t)(phase - t->r->phases) + 1;
	const unsigned int indent = 2 * (phase->depth < 4 ? phase->depth : 4);
	const unsigned int room = t->width - fixed - indent;
	const unsigned int columns = room > 60 ? 60 : room;
	char name[1024], safe[MAX_COLUMNS * TEXT_TERMINAL_GROWTH + 1];
	char text[UNITS_TEXT_MAX], shown[UNITS_TEXT_MAX + 4];
	unsigned int used, tail;

	fprintf(t->out, "%*zu.%*s  %*s", NUMBER - 1, number, TIME,
		units_time_for_people(text, phase->start_ns), (int)indent, "");
	tail = (unsigned int)snprintf(shown, sizeof(shown), " (%s)",
				      units_time_for_people(text, phase->duration_ns));
	phase_text(name, sizeof(name), phase);
	used = text_for_terminal(safe, sizeof(safe), name, columns - tail);
	fprintf(t->out, "%s%s%*s", safe, shown, (int)(columns - tail - used), "");
	snprintf(shown, sizeof(shown), "[%s]",
		 units_delta_for_people(text, phase->start_rss, phase->end_rss));
	fprintf(t->out, "%*s  peak %*s%s\n", DELTA, shown, PEAK,
		units_bytes_for_people(text, phase->peak_rss), phase == t->peak_phase ? mark : "");
}

typedef void (*phase_cells)(const struct text *t, const struct recording_phase *phase,
			    struct cells *cells, const void *context);

static void io_cells(const struct text *t, const struct recording_phase *phase, struct cells *cells,
		     const void *context)
{
	const struct profile_usage *u = &phase->usage;

	(void)t;
	(void)context;
	units_bytes_for_people(next_cell(cells), u->io_read);
	units_bytes_for_people(next_cell(cells), u->disk_read);
	/* More from storage than through calls: mapped files, of which nobody knows. */
	if (u->io_read && u->disk_read <= u->io_read)
		percent(next_cell(cells), u->io_read - u->disk_read, u->io_read);
	else
		snprintf(next_cell(cells), UNITS_TEXT_MAX, "-");
	units_bytes_for_people(next_cell(cells), u->io_write);
	units_bytes_for_people(next_cell(cells), u->disk_write);
}

static void cpu_cells(const struct text *t, const struct recording_phase *phase,
		      struct cells *cells, const void *context)
{
	(void)context;
	units_time_for_people(next_cell(cells), phase->usage.cpu_ns);
	percent(next_cell(cells), phase->usage.cpu_ns, t->r->totals.usage.cpu_ns);
	snprintf(next_cell(cells), UNITS_TEXT_MAX, "%.2f",
		 phase->duration_ns ? (double)phase->usage.cpu_ns / (double)phase->duration_ns : 0);
}

static void fit_cells(const struct text *t, const struct recording_phase *phase,
		      struct cells *cells, const void *context)
{
	struct recording_need need;

	(void)t;
	recording_need(context, phase->start_ns, phase->start_ns + phase->duration_ns, &need);
	units_bytes_for_people(next_cell(cells), need.needed);
	units_bytes_for_people(next_cell(cells), need.files);
	units_bytes_for_people(next_cell(cells), phase->peak_rss);
}

struct list {
	const struct recording_phase **phases;
	size_t n;
};

static void put_phases(const struct text *t, const struct list *list)
{
	put_title(t, "Phases\n");
	for (size_t i = 0; i < list->n && i < t->top; i++)
		put_phase(t, list->phases[i]);
	put_more(t, list->n, "phases");
}

static bool moves_bytes(const struct recording_phase *phase)
{
	const struct profile_usage *u = &phase->usage;

	return u->io_read || u->io_write || u->disk_read || u->disk_write;
}

static bool computes(const struct recording_phase *phase)
{
	return phase->usage.cpu_ns != 0;
}

static bool any(const struct recording_phase *phase)
{
	(void)phase;
	return true;
}

/* Those for which there is something to say; no table if there are none. */
static void put_table(const struct text *t, const struct list *list, const char *const *titles,
		      bool (*has_any)(const struct recording_phase *phase), phase_cells cells_of,
		      const void *context)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct cells cells = {.n = 0};
		char name[1024];

		if (!has_any(list->phases[i]) || n++ >= t->top)
			continue;
		if (n == 1)
			put_titles(t, titles);
		phase_text(name, sizeof(name), list->phases[i]);
		cells_of(t, list->phases[i], &cells, context);
		put_line(t, name, 2 * list->phases[i]->depth, &cells);
	}
	put_more(t, n, "phases");
}

static void put_totals(const struct text *t)
{
	const struct profile_usage *u = &t->r->totals.usage;
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX], d[UNITS_TEXT_MAX];
	char cpu[UNITS_TEXT_MAX], line[256];

	/* Quark's file has these two only. */
	if (!u->io_read && !u->io_write && !u->cpu_ns) {
		if (u->disk_read || u->disk_write)
			fprintf(t->out, "Storage: read %s, wrote %s\n",
				units_bytes_for_people(b, u->disk_read),
				units_bytes_for_people(d, u->disk_write));
		return;
	}
	snprintf(line, sizeof(line), "Read %s (storage %s), wrote %s (storage %s), CPU %s",
		 units_bytes_for_people(a, u->io_read), units_bytes_for_people(b, u->disk_read),
		 units_bytes_for_people(c, u->io_write), units_bytes_for_people(d, u->disk_write),
		 units_time_for_people(cpu, u->cpu_ns));
	put_wrapped(t, "", line);
}

static void put_tables(const struct text *t, const struct list *list,
		       const struct recording_needs *needs)
{
	static const char *const io[] = {"I/O BY PHASE", "READ",    "STORAGE", "IN CACHE",
					 "WRITTEN",	 "STORAGE", NULL};
	static const char *const cpu[] = {"CPU BY PHASE", "TIME", "SHARE", "CORES", NULL};
	static const char *const fit[] = {"WILL IT FIT", "NEEDS", "FILES", "PEAK", NULL};
	struct recording_need need;

	put_table(t, list, io, moves_bytes, io_cells, NULL);
	put_table(t, list, cpu, computes, cpu_cells, NULL);
	if (recording_need(needs, 0, UINT64_MAX, &need))
		put_table(t, list, fit, any, fit_cells, needs);
}

/* ---- Processes ---- */

static void exit_text(char out[UNITS_TEXT_MAX], const struct recording_process *process)
{
	if (!process->ended)
		snprintf(out, UNITS_TEXT_MAX,
			 process->flags & WIRE_PROCESS_EXIT_LOST ? "lost" : "running");
	else if (process->exit_signal)
		snprintf(out, UNITS_TEXT_MAX, "signal %u", process->exit_signal);
	else
		snprintf(out, UNITS_TEXT_MAX, "exit %u", process->exit_code);
}

static void put_process(const struct text *t, const struct recording_process *process)
{
	struct cells cells = {.n = 0};
	char name[MAX_COLUMNS];

	process_text(name, sizeof(name), process);
	units_time_for_people(next_cell(&cells), process->start_ns);
	units_bytes_for_people(next_cell(&cells), process->peak_rss);
	units_bytes_for_people(next_cell(&cells), process->usage.io_read);
	units_bytes_for_people(next_cell(&cells), process->usage.io_write);
	units_time_for_people(next_cell(&cells), process->usage.cpu_ns);
	exit_text(next_cell(&cells), process);
	put_line(t, name, 0, &cells);
}

static int put_processes(const struct text *t)
{
	static const char *const titles[] = {"PROCESS", "START", "PEAK", "READ",
					     "WRITTEN", "CPU",	 "END",	 NULL};
	size_t n;
	const struct recording_process **list = select_processes(t->r, t->options, &n);

	if (!list)
		return -1;
	if (n)
		put_titles(t, titles);
	for (size_t i = 0; i < n && i < t->top; i++)
		put_process(t, list[i]);
	put_more(t, n, "processes");
	free(list);
	return 0;
}

/* ---- Quality ---- */

/* Thinning is no loss: peaks stay. */
static bool is_worth_saying(const struct recording_count *count)
{
	return count->count && strcmp(count->key, "thinned_points");
}

static void put_doubt(const struct text *t, const char *line, bool *any_said)
{
	if (!*any_said)
		put_title(t, "What is missing or in doubt\n");
	*any_said = true;
	put_wrapped(t, "  ! ", line);
}

static void put_quality(const struct text *t)
{
	const struct recording_quality *q = &t->r->quality;
	bool any_said = false;
	char line[1024];

	for (size_t i = 0; i < q->n_counts; i++) {
		const char *means = quality_means(q->counts[i].key);

		if (!is_worth_saying(&q->counts[i]))
			continue;
		snprintf(line, sizeof(line), "%" PRIu64 " %.400s", q->counts[i].count,
			 means ? means : q->counts[i].key);
		put_doubt(t, line, &any_said);
	}
	for (size_t i = 0; i < q->n_warnings && i < MAX_WARNINGS; i++) {
		snprintf(line, sizeof(line), "%.400s: %.400s", q->warnings[i].what,
			 q->warnings[i].why);
		put_doubt(t, line, &any_said);
	}
	if (q->n_warnings > MAX_WARNINGS)
		fprintf(t->out, "%*s... and %zu more warnings in the profile\n", INDENT, "",
			q->n_warnings - MAX_WARNINGS);
}

/* ---- The whole ---- */

static int put_all(const struct text *t, const struct list *list,
		   const struct recording_needs *needs)
{
	put_command(t);
	put_when_and_where(t);
	put_partial(t);
	put_peak(t);
	put_line_of_memory(t);
	put_fit(t, needs);
	put_totals(t);
	if (list->n) {
		put_phases(t, list);
		put_tables(t, list, needs);
	}
	if (put_processes(t))
		return -1;
	put_quality(t);
	return 0;
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	const struct text t = {
		.out = out,
		.r = r,
		.options = options,
		.width = options->width < MIN_COLUMNS	? MIN_COLUMNS
			 : options->width > MAX_COLUMNS ? MAX_COLUMNS
							: options->width,
		.top = options->top ? options->top : TOP,
		.peak_phase = recording_peak_phase(r),
	};
	struct list list;
	struct recording_needs *needs = recording_needs_new(r);
	int failed = -1;

	list.phases = select_phases(r, options, &list.n);
	if (needs && list.phases)
		failed = put_all(&t, &list, needs);
	if (failed)
		error_set(err, "not enough memory for the report");
	recording_needs_free(needs);
	free(list.phases);
	return failed;
}

const struct renderer renderer_text = {
	.name = "text",
	.extension = ".txt",
	.what = "tables for people",
	.render = render,
};
