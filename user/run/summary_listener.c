/* SPDX-License-Identifier: GPL-2.0-only */
/* The table at the end of a run, for people. What processes named themselves is made harmless
 * first. */
#include "run/summary.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/names.h"
#include "base/table.h"
#include "base/tty.h"
#include "capture/run.h"
#include "format/by_name.h"
#include "format/charged.h"
#include "format/gpus.h"
#include "format/ending.h"
#include "format/headroom.h"
#include "format/least.h"
#include "format/quality_table.h"
#include "format/recorded.h"
#include "format/trending.h"
#include "format/waits.h"
#include "run/listeners.h"

enum {
	MAX_PHASES = 20,
	MAX_PROCESSES = 10,
	WIDE = 100,	/* columns that units such as MiB need */
	MIN_SHOWN = 24, /* columns of a name, before numbers give way to it */
};

struct summary {
	struct listener listener; /* first */
	struct capture *capture;
	const struct listener *profile;
};

enum { PIECE_MAX = 512 };

static void peak_piece(char out[PIECE_MAX], const struct recording *r)
{
	const char *words;
	const struct recording_phase *phase = recording_where_peak(r, &words);
	struct by_name *names;
	char peak[UNITS_TEXT_MAX], when[UNITS_TEXT_MAX];
	char name[2 * MIN_NAME * TEXT_TERMINAL_GROWTH + 1] = "";

	units_bytes_for_people(peak, r->totals.peak_rss);
	units_time_for_people(when, recording_peak_ns(r));
	if (!phase) {
		snprintf(out, PIECE_MAX, "peak %s at %s", peak, when);
		return;
	}
	names = by_name_new(r);
	text_cut_middle(name, names ? by_name_path(names, phase) : phase->shown, 2 * MIN_NAME);
	by_name_free(names);
	snprintf(out, PIECE_MAX, "peak %s at %s (%s%s)", peak, when, words + strlen(", "), name);
}

/* How the run ended, if it did not end well: people see it before all figures. */
static void put_ending(const struct table *table, const struct recording *r)
{
	struct ending ending;

	recording_ending(r, &ending);
	if (!ending.is_bad)
		return;
	table_tone(table, WARNING);
	table_wrapped(table, "! ", ending.text);
	table_tone(table, PLAIN);
}

static void put_headline(const struct table *table, const struct profile *p,
			 const struct recording *r)
{
	const struct profile_totals *t = profile_totals(p);
	char duration[UNITS_TEXT_MAX], run[PIECE_MAX], peak[PIECE_MAX];
	char processes[PIECE_MAX], checkpoints[PIECE_MAX];
	const char *const pieces[] = {run, peak, processes, checkpoints};

	snprintf(run, sizeof(run), "qprof-bpf: %s",
		 units_time_for_people(duration, t->duration_ns));
	peak_piece(peak, r);
	units_counted(processes, sizeof(processes), t->processes, "process(es)");
	units_counted(checkpoints, sizeof(checkpoints), t->checkpoints, "checkpoint(s)");
	table_tone(table, BOLD);
	table_pieces(table, ", ", pieces, sizeof(pieces) / sizeof(*pieces));
	table_tone(table, PLAIN);
}

static void put_usage(const struct table *table, const struct profile_usage *usage)
{
	char bytes[UNITS_TEXT_MAX], stored[UNITS_TEXT_MAX];
	char read[PIECE_MAX], wrote[PIECE_MAX], cpu[PIECE_MAX];
	const char *const pieces[] = {read, wrote, cpu};

	snprintf(read, sizeof(read), "%*sread %s (storage %s)", INDENT, "",
		 units_bytes_for_people(bytes, usage->io_read),
		 units_bytes_for_people(stored, usage->disk_read));
	snprintf(wrote, sizeof(wrote), "wrote %s (storage %s)",
		 units_bytes_for_people(bytes, usage->io_write),
		 units_bytes_for_people(stored, usage->disk_write));
	snprintf(cpu, sizeof(cpu), "CPU %s", units_time_for_people(bytes, usage->cpu_ns));
	table_pieces(table, "   ", pieces, sizeof(pieces) / sizeof(*pieces));
}

/* The peak is a sum over processes, which may share pages. */
static void put_least(const struct table *table, const struct profile *p)
{
	struct recording_share shares[PROFILE_MAX_SHARES];
	const struct recording_peak peak = recorded_peak(p, shares);
	char words[LEAST_WORDS_MAX];

	if (least_of_peak(words, &peak, profile_totals(p)->peak_rss, false))
		fprintf(table->out, "%*s%s\n", INDENT, "", words);
}

/* With others in it, its figures are of less use than a line is worth. */
static void put_charged(const struct table *table, const struct recording *r)
{
	char words[CHARGED_WORDS_MAX];
	struct ending ending;

	if (!r->run.memory_cgroup_is_own)
		return;
	recording_ending(r, &ending);
	if (charged_words(words, r, ending.is_killed))
		table_wrapped(table, "  ", words);
}

/* Beside the peak, which has none of it. */
static void put_hugetlb(const struct table *table, uint64_t peak)
{
	char bytes[UNITS_TEXT_MAX];

	if (peak)
		fprintf(table->out, "%*shugetlb %s or more, beside the peak\n", INDENT, "",
			units_bytes_for_people(bytes, peak));
}

/* Numbers beside the names of phases or processes. */
struct listing {
	const char *name;
	struct table_columns columns;
	void (*fill)(const struct table *table, const void *item, struct table_line *line);
	/* Returns the title that stands between an item and the one before, or NULL. May be NULL.
	 */
	const char *(*title)(const void *item, const void *before);
};

static void put_listing(const struct table *table, const struct listing *listing,
			const void *const *items, size_t n)
{
	struct table_columns columns = listing->columns;
	struct table_line line;

	for (size_t i = 0; i < n; i++) {
		line = (struct table_line){0};
		listing->fill(table, items[i], &line);
		table_measure(&columns, &line);
	}
	table_settle(table, &columns, listing->name);
	for (size_t i = 0; i < n; i++) {
		const char *title =
			i && listing->title ? listing->title(items[i], items[i - 1]) : NULL;

		if (title)
			fprintf(table->out, "%*s%s\n", INDENT, "", title);
		line = (struct table_line){0};
		listing->fill(table, items[i], &line);
		table_settled(table, &columns, &line);
	}
}

/* With short units where columns are few: "1.90G" for "1.90 GiB". */
static bool is_narrow(const struct table *table)
{
	return table->width < WIDE;
}

static void bytes_cell(const struct table *table, char *out, uint64_t bytes)
{
	if (is_narrow(table))
		units_bytes_short(out, bytes);
	else
		units_bytes_for_people(out, bytes);
}

static void delta_cell(const struct table *table, char *out, int64_t delta)
{
	if (is_narrow(table))
		units_delta_short(out, delta);
	else
		units_delta_for_people(out, delta < 0 ? 0 - (uint64_t)delta : 0,
				       delta > 0 ? (uint64_t)delta : 0);
}

/* Peak and growth of the process that began the phase. */
static void fill_own(const struct table *table, const struct recording_phase *phase,
		     char (*cells)[UNITS_TEXT_MAX])
{
	snprintf(cells[0], UNITS_TEXT_MAX, "-");
	snprintf(cells[1], UNITS_TEXT_MAX, "-");
	if (phase->knows.own_peak)
		bytes_cell(table, cells[0], phase->own_peak);
	if (phase->knows.own_delta)
		delta_cell(table, cells[1], phase->own_delta);
}

static void fill_phase(const struct table *table, const void *item, struct table_line *line)
{
	const struct recording_phase *phase = item;
	char time[UNITS_TEXT_MAX];

	line->indent = 2 * phase->level;
	snprintf(line->name, sizeof(line->name), "%s%s", phase->shown,
		 phase->closed ? "" : " (open)");
	units_time_for_people(line->cells[0], phase->start_ns);
	snprintf(line->cells[1], UNITS_TEXT_MAX, "%s%.*s", phase->buffered ? "~" : "",
		 UNITS_TEXT_MAX - 2, units_time_for_people(time, phase->duration_ns));
	bytes_cell(table, line->cells[2], phase->peak_rss);
	delta_cell(table, line->cells[3], phase->delta_rss);
	bytes_cell(table, line->cells[4], phase->usage.io_read);
	bytes_cell(table, line->cells[5], phase->usage.io_write);
	units_time_for_people(line->cells[6], phase->usage.cpu_ns);
	fill_own(table, phase, line->cells + 7);
}

/* By their peaks; of equal peaks, the longer. So no phase comes before one that it is in. */
static bool is_larger_phase(const void *a, const void *b)
{
	const struct recording_phase *x = a, *y = b;

	if (x->peak_rss != y->peak_rss)
		return x->peak_rss > y->peak_rss;
	return x->duration_ns > y->duration_ns;
}

/* Stretches between marks come after all pairs: they tell of the same time once more. Phases of a
 * kind are as in their array, where they are in the order in which they began. */
static int by_kind(const void *a, const void *b)
{
	const struct recording_phase *x = *(const void *const *)a, *y = *(const void *const *)b;

	if (x->kind != y->kind)
		return x->kind == PROFILE_PHASE_GAP ? 1 : -1;
	return (x > y) - (x < y);
}

static const char *kind_title(const void *item, const void *before)
{
	const struct recording_phase *phase = item, *last = before;

	return phase->kind == PROFILE_PHASE_GAP && last->kind != phase->kind ? "between marks"
									     : NULL;
}

/* Selects the largest, and in any case the one that the headline names. Returns how many. */
static size_t select_phases(const struct recording *r, const void *selected[MAX_PHASES])
{
	const char *words;
	const struct recording_phase *named = recording_where_peak(r, &words);
	size_t first = 0, n_more = 0;

	if (named)
		selected[first++] = named;
	for (size_t i = 0; i < r->n_phases; i++) {
		if (&r->phases[i] != named)
			n_more = array_rank(selected + first, n_more, MAX_PHASES - first,
					    &r->phases[i], is_larger_phase);
	}
	qsort(selected, first + n_more, sizeof(*selected), by_kind);
	return first + n_more;
}

/*
 * Puts the time in no phase among the phases: before the first pair, and after the last. Returns
 * how many rows there are.
 */
static size_t with_outside(const struct recording *r, const void *const *phases, size_t n,
			   const void **rows)
{
	size_t n_rows = 0, outside = 0, i = 0;

	if (r->n_outside && !r->outside[0].start_ns)
		rows[n_rows++] = &r->outside[outside++];
	for (; i < n && ((const struct recording_phase *)phases[i])->kind != PROFILE_PHASE_GAP; i++)
		rows[n_rows++] = phases[i];
	while (outside < r->n_outside)
		rows[n_rows++] = &r->outside[outside++];
	for (; i < n; i++)
		rows[n_rows++] = phases[i];
	return n_rows;
}

static void put_phases(const struct table *table, const struct recording *r)
{
	enum { OWN_COLUMNS = 2 };
	static const char *const titles[] = {"START", "TIME", "PEAK",	  "DELTA",    "READ",
					     "WRITE", "CPU",  "OWN PEAK", "OWN DELTA"};
	static const unsigned int leaving[] = {0, 6, 5, 4, 3, 8, 7};
	/* One process alone is the tree. */
	const unsigned int without = r->n_processes > 1 ? 0 : OWN_COLUMNS;
	const struct listing listing = {
		.name = "PHASE",
		.columns = {.titles = titles,
			    .n = sizeof(titles) / sizeof(*titles) - without,
			    .leaving = leaving,
			    .n_leaving = sizeof(leaving) / sizeof(*leaving) - without},
		.fill = fill_phase,
		.title = kind_title,
	};
	const void *selected[MAX_PHASES], *rows[MAX_PHASES + PROFILE_OUTSIDE_PARTS];
	size_t n;

	if (!r->n_phases)
		return;
	n = select_phases(r, selected);
	put_listing(table, &listing, rows, with_outside(r, selected, n, rows));
	table_more(table, r->n_phases, MAX_PHASES, "smaller phase(s)", "profile");
}

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

static void fill_process(const struct table *table, const void *item, struct table_line *line)
{
	const struct recording_process *process = item;

	snprintf(line->name, sizeof(line->name), "%u %s", process->pid,
		 short_command(process->cmdline, process->comm));
	bytes_cell(table, line->cells[0], process->peak_rss);
	bytes_cell(table, line->cells[1], process->usage.io_read);
	bytes_cell(table, line->cells[2], process->usage.io_write);
	units_time_for_people(line->cells[3], process->usage.cpu_ns);
	exit_text(line->cells[4], process);
}

static bool is_larger_process(const void *a, const void *b)
{
	const struct recording_process *x = a, *y = b;

	return x->peak_rss > y->peak_rss;
}

static void put_processes(const struct table *table, const struct recording *r)
{
	static const char *const titles[] = {"PEAK", "READ", "WRITE", "CPU", "END"};
	static const unsigned int leaving[] = {3, 2, 1};
	static const struct listing listing = {
		.name = "PROCESS",
		.columns = {.titles = titles,
			    .n = sizeof(titles) / sizeof(*titles),
			    .leaving = leaving,
			    .n_leaving = sizeof(leaving) / sizeof(*leaving)},
		.fill = fill_process,
	};
	const void *top[MAX_PROCESSES];
	size_t n_top = 0;

	if (!r->n_processes)
		return;
	for (size_t i = 0; i < r->n_processes; i++)
		n_top = array_rank(top, n_top, MAX_PROCESSES, &r->processes[i], is_larger_process);
	put_listing(table, &listing, top, n_top);
	table_more(table, r->n_processes, n_top, "more process(es)", "profile");
}

static void put_quality(const struct table *table, const struct profile *p,
			const struct run_quality *quality)
{
	struct quality_count counts[QUALITY_MAX_COUNTS];
	const size_t n = quality_of_run(quality, profile_losses(p), counts);

	quality_table(table, counts, n, quality, "profile");
}

static void put_cost(const struct table *table, const struct profile *p,
		     const struct run_quality *quality)
{
	const double share = quality_bpf_share(p, quality);
	char time[UNITS_TEXT_MAX], runs[UNITS_TEXT_MAX], own[64], bpf[96], of[64];
	const char *const pieces[] = {own, bpf, of};

	if (!quality->cost.counted)
		return;
	snprintf(own, sizeof(own), "%*sqprof-bpf took %s", INDENT, "",
		 units_time_for_people(time, quality->cost.own_cpu_ns));
	snprintf(bpf, sizeof(bpf), "its BPF programs %s in %s",
		 units_time_for_people(time, quality->cost.bpf_run_ns),
		 units_counted(runs, sizeof(runs), quality->cost.bpf_runs, "run(s)"));
	snprintf(of, sizeof(of), "%.2f %% of CPU", 100 * share);
	table_pieces(table, ", ", pieces, isnan(share) ? 2 : 3);
}

/* Returns a path as a word for a shell's command line, allocated; NULL also if a terminal would not
 * show it as it is, so that it cannot be copied from there. */
static char *shell_word(const char *path, const char *shown)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./+@%:,=-";
	const char *lead = *path == '-' ? "./" : "";
	char *word, *end;

	if (strcmp(shown, path) != 0)
		return NULL;
	word = malloc(strlen(path) * strlen("'\\''") + strlen("./''") + 1);
	if (!word)
		return NULL;
	if (!path[strspn(path, plain)]) {
		stpcpy(stpcpy(word, lead), path);
		return word;
	}
	end = stpcpy(stpcpy(word, "'"), lead);
	for (const char *c = path; *c; c++)
		end = *c == '\'' ? stpcpy(end, "'\\''") : stpncpy(end, c, 1);
	stpcpy(end, "'");
	return word;
}

/* The file, and what can be done with it. Neither is cut: people copy them. */
static void put_profile(const struct table *table, const struct summary_page *page)
{
	char shown[PATH_MAX * TEXT_TERMINAL_GROWTH + 1], old[sizeof(shown)];
	char *word, *file = NULL, *next = NULL;
	const char *pieces[2];

	if (!page->profile)
		return;
	text_for_terminal(shown, sizeof(shown), page->profile, PATH_MAX);
	text_for_terminal(old, sizeof(old), page->old ? page->old : "", PATH_MAX);
	word = shell_word(page->profile, shown);
	if (asprintf(&file, "%*sprofile: %s%s%s%s", INDENT, "", shown,
		     page->old ? " (the one before: " : "", old, page->old ? ")" : "") < 0)
		file = NULL;
	if (word && asprintf(&next, "next: qprof-bpf report %s", word) < 0)
		next = NULL;
	pieces[0] = file;
	pieces[1] = next;
	if (file)
		table_pieces(table, "   ", pieces, next ? 2 : 1);
	free(word);
	free(file);
	free(next);
}

static void put_waits(const struct table *table, const struct recording *r)
{
	char sentence[WAITS_TEXT_MAX];

	if (waits_sentence(sentence, r))
		table_wrapped(table, "  slow: ", sentence);
}

/* What the report has more of. */
static void put_trend(const struct table *table, const struct recording *r)
{
	char sentence[TRENDING_TEXT_MAX];

	if (r->n_trends)
		table_wrapped(table, "  grows: ", trending_sentence(sentence, r, &r->trends[0]));
}

static void put_headroom(const struct table *table, const struct recording *r)
{
	char sentence[HEADROOM_TEXT_MAX];

	if (headroom_sentence(sentence, r))
		table_wrapped(table, "  closest ", sentence);
}

static void put_gpus(const struct table *table, const struct recording *r)
{
	char words[GPUS_WORDS_MAX];

	if (gpus_held_words(words, &r->totals))
		table_wrapped(table, "  GPU memory ", words);
	for (size_t i = 0; i < r->n_gpus; i++) {
		if (gpus_device_words(words, &r->gpus[i]))
			table_wrapped(table, "  GPU ", words);
	}
	if (gpus_refusal_words(words, r))
		table_wrapped(table, "  GPU memory ", words);
}

static int put_summary(const struct recording *r, const struct profile *p,
		       const struct run_quality *quality, int fd, const struct summary_page *page)
{
	struct table table;
	int err = table_open(&table, page->width, page->colour);

	if (err)
		return err;
	table.min_name = MIN_SHOWN;
	table.max_name = table.width * 2 / 3;
	if (page->after_others)
		fputc('\n', table.out);
	put_ending(&table, r);
	put_headline(&table, p, r);
	put_least(&table, p);
	put_hugetlb(&table, profile_totals(p)->peak_hugetlb);
	put_charged(&table, r);
	put_gpus(&table, r);
	put_usage(&table, &r->totals.usage);
	put_waits(&table, r);
	put_trend(&table, r);
	put_headroom(&table, r);
	put_phases(&table, r);
	put_processes(&table, r);
	put_cost(&table, p, quality);
	put_quality(&table, p, quality);
	put_profile(&table, page);
	return table_write(&table, fd);
}

int summary_write(const struct profile *p, const struct run_quality *quality, int fd,
		  const struct summary_page *page)
{
	struct recording r = {.arena = arena_new()};
	int err = recorded_profile(&r, p, page->info);

	if (!err)
		err = put_summary(&r, p, quality, fd, page);
	recording_free(&r);
	return err;
}

/* ---- The listener -----------------------------------------------------------------------------
 */

static int start(struct listener *l, struct capture *c, struct error *err)
{
	(void)err;
	((struct summary *)l)->capture = c;
	return 0;
}

static void finish(struct listener *l)
{
	struct summary *s = (struct summary *)l;
	struct summary_page page = {
		.width = tty_width(STDERR_FILENO),
		.colour = tty_colour(STDERR_FILENO),
		.after_others = isatty(STDERR_FILENO),
	};

	page.info = capture_info(s->capture);
	page.profile = profile_listener_path(s->profile, &page.old);
	summary_write(run_profile(s->capture), capture_quality(s->capture), STDERR_FILENO, &page);
}

static void close_summary(struct listener *l)
{
	free(l);
}

struct listener *summary_listener_new(const struct listener *profile)
{
	struct summary *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->listener = (struct listener){.start = start, .finish = finish, .close = close_summary};
	s->profile = profile;
	return &s->listener;
}
