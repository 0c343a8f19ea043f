/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The report as a page for a browser. html/ is the page; this file writes the JSON that it shows.
 * Amounts are bytes, times are seconds since the start of the run. Only put_shown writes texts that
 * programs chose, so the page can show each text as it is.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "report/html/page.h"
#include "base/json_writer.h"
#include "report/layout.h"
#include "report/markup.h"
#include "report/palette.h"
#include "format/ending.h"
#include "format/quality.h"
#include "format/quantities.h"
#include "report/rates.h"
#include "report/renderer.h"
#include "base/text.h"
#include "base/units.h"

enum {
	MAX_RATES = 2000,
	MAX_NAME = 1024, /* columns of a text; longer texts are cut */
};

struct page {
	const struct recording *r;
	const struct render_options *options;
	struct recording_needs *needs;
	struct ending ending;
	struct layout layout;
	struct rate *rates;
	size_t n_rates;
	FILE *out;
	struct json_writer json;
};

/* ---- Values ---- */

static void put_shown(struct json_writer *j, const char *text)
{
	char safe[MAX_NAME * TEXT_TERMINAL_GROWTH + 1];

	if (text)
		text_for_terminal(safe, sizeof(safe), text, MAX_NAME);
	json_text(j, text ? safe : NULL);
}

static void put_secs(struct json_writer *j, uint64_t ns)
{
	char text[UNITS_TEXT_MAX];

	json_plain(j, units_secs(text, ns, 6));
}

static void put_bool(struct json_writer *j, bool value)
{
	json_plain(j, value ? "true" : "false");
}

static void key_shown(struct json_writer *j, const char *key, const char *text)
{
	json_key(j, key);
	put_shown(j, text);
}

static void key_secs(struct json_writer *j, const char *key, uint64_t ns)
{
	json_key(j, key);
	put_secs(j, ns);
}

static void key_array(struct json_writer *j, const char *key)
{
	json_key(j, key);
	json_array(j);
}

static void key_object(struct json_writer *j, const char *key)
{
	json_key(j, key);
	json_object(j);
}

/* Returns the uint64_t at the offset within item i. */
static uint64_t column_value(const void *items, size_t i, size_t size, size_t offset)
{
	return *(const uint64_t *)((const char *)items + i * size + offset);
}

/* The uint64_t at the offset within each of the n items. items is NULL if n is 0. */
static void put_column(struct json_writer *j, const char *key, const void *items, size_t n,
		       size_t size, size_t offset)
{
	key_array(j, key);
	for (size_t i = 0; i < n; i++)
		json_u64(j, column_value(items, i, size, offset));
	json_array_end(j);
}

static void put_time_column(struct json_writer *j, const void *items, size_t n, size_t size,
			    size_t offset)
{
	key_array(j, "time");
	for (size_t i = 0; i < n; i++)
		put_secs(j, column_value(items, i, size, offset));
	json_array_end(j);
}

/* Begins a table: its keys, then its rows. keys end in NULL. */
static void begin_keys(struct json_writer *j, const char *name, const char *const *keys)
{
	key_object(j, name);
	key_array(j, "keys");
	for (; *keys; keys++)
		json_text(j, *keys);
}

static void end_keys(struct json_writer *j)
{
	json_array_end(j);
	key_array(j, "rows");
}

static void begin_rows(struct json_writer *j, const char *name, const char *const *keys)
{
	begin_keys(j, name, keys);
	end_keys(j);
}

static void end_rows(struct json_writer *j)
{
	json_array_end(j);
	json_object_end(j);
}

static void put_usage(struct json_writer *j, const struct profile_usage *usage)
{
	json_u64(j, usage->io_read);
	json_u64(j, usage->disk_read);
	json_u64(j, usage->io_write);
	json_u64(j, usage->disk_write);
	put_secs(j, usage->cpu_ns);
}

/* ---- Later quantities: the page has a column for each that the profile has ---- */

static bool is_shown(const struct quantity *quantity, const struct recording *r)
{
	return quantity->column && quantity_of(quantity, &r->totals.usage);
}

/* Begins a table whose rows end with put_later(). */
static void begin_usage_rows(struct json_writer *j, const char *name, const char *const *keys,
			     const struct recording *r)
{
	begin_keys(j, name, keys);
	for (int i = 0; i < N_QUANTITIES; i++) {
		if (is_shown(&quantities[i], r))
			json_text(j, quantities[i].stem);
	}
	end_keys(j);
}

static void put_later(struct json_writer *j, const struct recording *r,
		      const struct profile_usage *usage)
{
	for (int i = 0; i < N_QUANTITIES; i++) {
		const uint64_t value = quantity_of(&quantities[i], usage);

		if (is_shown(&quantities[i], r) && quantities[i].unit == QUANTITY_NS)
			put_secs(j, value);
		else if (is_shown(&quantities[i], r))
			json_u64(j, value);
	}
}

static void put_quantities(struct json_writer *j, const struct recording *r)
{
	static const char *const keys[] = {"key", "title", "hint", "unit", NULL};
	static const char *const units[] = {"bytes", "secs", "count"};
	bool any = false;

	for (int i = 0; i < N_QUANTITIES; i++) {
		const struct quantity *q = &quantities[i];

		if (!is_shown(q, r))
			continue;
		if (!any)
			begin_rows(j, "quantities", keys);
		any = true;
		json_array(j);
		json_text(j, q->stem);
		json_text(j, q->column);
		json_text(j, q->words);
		json_text(j, units[q->unit]);
		json_array_end(j);
	}
	if (any)
		end_rows(j);
}

/* ---- Parts of the profile ---- */

/* The file without its folder: a report that is passed on must not tell the folder. */
static const char *source_name(const struct page *page)
{
	const char *source = page->options->source, *slash = strrchr(source, '/');

	if (!strcmp(source, "-"))
		return "stdin";
	return slash && slash[1] ? slash + 1 : source;
}

static void put_run(struct json_writer *j, const struct page *page)
{
	const struct recording_run *run = &page->r->run;

	key_shown(j, "source", source_name(page));
	key_shown(j, "version", run->version);
	key_shown(j, "hostname", run->hostname);
	key_shown(j, "kernel", run->kernel);
	json_key(j, "started_at");
	json_double(j, run->started_at);
	key_array(j, "command");
	for (size_t i = 0; i < run->n_command; i++)
		put_shown(j, run->command[i]);
	json_array_end(j);
	key_array(j, "pids");
	for (size_t i = 0; i < run->n_pids; i++)
		json_u64(j, run->pids[i]);
	json_array_end(j);
	key_shown(j, "partial", page->r->partial ? page->r->partial_text : NULL);
	/* The page knows the exact one. */
	if (recording_cpu_error(page->r) > RECORDING_CPU_EXACT_NS)
		key_secs(j, "cpu_error", recording_cpu_error(page->r));
	if (!page->ending.is_bad)
		return;
	key_shown(j, "ending", page->ending.text);
	json_key(j, "killed");
	put_bool(j, page->ending.is_killed);
}

static void put_totals(struct json_writer *j, const struct page *page)
{
	const struct recording_totals *totals = &page->r->totals;
	struct recording_need need;
	const bool is_known = recording_need(page->needs, 0, UINT64_MAX, &need);

	key_object(j, "totals");
	key_secs(j, "duration", totals->duration_ns);
	json_member_u64(j, "peak", totals->peak_rss);
	json_member_u64(j, "gpu_peak", totals->gpu_peak);
	if (totals->peak_hugetlb)
		json_member_u64(j, "hugetlb_peak", totals->peak_hugetlb);
	json_member_u64(j, "io_read", totals->usage.io_read);
	json_member_u64(j, "disk_read", totals->usage.disk_read);
	json_member_u64(j, "io_write", totals->usage.io_write);
	json_member_u64(j, "disk_write", totals->usage.disk_write);
	key_secs(j, "cpu", totals->usage.cpu_ns);
	if (is_known) {
		json_member_u64(j, "needed", need.needed);
		json_member_u64(j, "files", need.files);
	}
	json_object_end(j);
}

static void put_where(struct json_writer *j, const struct page *page, uint64_t ns,
		      const struct recording_phase *phase)
{
	const char *words;

	key_secs(j, "time", ns);
	phase = recording_where(page->r, ns, phase, &words);
	key_shown(j, "words", words);
	key_shown(j, "phase", phase ? phase->name : NULL);
}

/* Where memory got that high often says more than where it was highest. */
static void put_plateau(struct json_writer *j, const struct page *page, uint64_t peak_ns,
			const struct recording_phase *peak_phase)
{
	const uint64_t ns = recording_plateau_ns(page->r);
	const struct recording_phase *phase = recording_phase_at(page->r, ns);

	if (ns >= peak_ns || phase == peak_phase)
		return;
	key_object(j, "plateau");
	put_where(j, page, ns, phase);
	json_object_end(j);
}

static void put_peak(struct json_writer *j, const struct page *page)
{
	static const char *const keys[] = {"process", "anon", "shmem", "file", "swap", NULL};
	const struct recording_peak *peak = &page->r->peak;
	const struct recording_phase *phase = recording_peak_phase(page->r);
	uint64_t ns;

	key_object(j, "peak");
	json_member_bool(j, "exact", recording_peak_time(page->r, &ns));
	put_where(j, page, ns, phase);
	json_member_u64(j, "number", phase ? (uint64_t)(phase - page->r->phases) + 1 : 0);
	put_plateau(j, page, ns, phase);
	if (peak->has) {
		json_member_u64(j, "anon", peak->anon);
		json_member_u64(j, "shmem", peak->shmem);
		json_member_u64(j, "file", peak->file);
		json_member_u64(j, "swap", peak->swap);
		begin_rows(j, "shares", keys);
		for (size_t i = 0; i < peak->n_shares; i++) {
			const struct recording_share *share = &peak->shares[i];

			json_array(j);
			json_u64(j, share->process);
			json_u64(j, share->anon);
			json_u64(j, share->shmem);
			json_u64(j, share->file);
			json_u64(j, share->swap);
			json_array_end(j);
		}
		end_rows(j);
	}
	json_object_end(j);
}

/* As columns, which charts take. `unsplit` is memory of which the kind is not known. */
static void put_timeline(struct json_writer *j, const struct recording *r)
{
#define COLUMN(key, type, items, n, member)                                                        \
	put_column(j, key, items, n, sizeof(type), offsetof(type, member))
	typedef struct recording_point point;

	key_object(j, "timeline");
	put_time_column(j, r->points, r->n_points, sizeof(point), offsetof(point, time_ns));
	COLUMN("anon", point, r->points, r->n_points, anon);
	COLUMN("shmem", point, r->points, r->n_points, shmem);
	COLUMN("file", point, r->points, r->n_points, file);
	COLUMN("swap", point, r->points, r->n_points, swap);
	key_array(j, "unsplit");
	for (size_t i = 0; i < r->n_points; i++) {
		const point *p = &r->points[i];

		json_u64(j, recording_point_rss(p) - p->file - p->anon - p->shmem);
	}
	json_array_end(j);
	json_object_end(j);
}

static void put_tracks(struct json_writer *j, const struct recording *r)
{
	typedef struct recording_track_point point;

	key_object(j, "tracks");
	key_array(j, "process");
	for (size_t i = 0; i < r->n_tracks; i++)
		json_u64(j, r->tracks[i].process);
	json_array_end(j);
	put_time_column(j, r->tracks, r->n_tracks, sizeof(point), offsetof(point, time_ns));
	COLUMN("anon", point, r->tracks, r->n_tracks, anon);
	COLUMN("shmem", point, r->tracks, r->n_tracks, shmem);
	COLUMN("file", point, r->tracks, r->n_tracks, file);
	json_object_end(j);
#undef COLUMN
}

static void put_rates(struct json_writer *j, const struct page *page)
{
	static const char *const keys[] = {"start",    "end",	     "io_read", "disk_read",
					   "io_write", "disk_write", "cpu",	NULL};

	begin_rows(j, "rates", keys);
	for (size_t i = 0; i < page->n_rates; i++) {
		json_array(j);
		put_secs(j, page->rates[i].start_ns);
		put_secs(j, page->rates[i].end_ns);
		put_usage(j, &page->rates[i].usage);
		json_array_end(j);
	}
	end_rows(j);
}

/* The marks: each gap but the first begins with a mark, the first with the run. */
static void put_marks(struct json_writer *j, const struct recording *r)
{
	static const char *const keys[] = {"time", "name", NULL};
	bool first = true;

	begin_rows(j, "marks", keys);
	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (phase->kind != PROFILE_PHASE_GAP)
			continue;
		if (!first) {
			json_array(j);
			put_secs(j, phase->start_ns);
			put_shown(j, phase->name);
			json_array_end(j);
		}
		first = false;
	}
	end_rows(j);
}

static void put_phase(struct json_writer *j, const struct page *page, size_t i)
{
	const struct recording_phase *phase = &page->r->phases[i];
	struct recording_need need;
	const bool is_known = recording_need(page->needs, phase->start_ns,
					     phase->start_ns + phase->duration_ns, &need);

	json_array(j);
	json_u64(j, i + 1);
	put_shown(j, phase->name);
	put_shown(j, phase->to);
	put_bool(j, phase->kind == PROFILE_PHASE_GAP);
	json_u64(j, phase->depth);
	json_u64(j, phase->pid);
	put_bool(j, phase->closed);
	put_secs(j, phase->start_ns);
	put_secs(j, phase->duration_ns);
	json_u64(j, phase->peak_rss);
	json_i64(j, phase->delta_rss);
	json_u64(j, phase->end_rss);
	put_usage(j, &phase->usage);
	if (is_known)
		json_u64(j, need.needed);
	else
		json_plain(j, "null");
	json_u64(j, page->layout.places[i].lane);
	json_u64(j, page->layout.places[i].group);
	put_later(j, page->r, &phase->usage);
	json_array_end(j);
}

static void put_phases(struct json_writer *j, const struct page *page)
{
	static const char *const keys[] = {
		"number",   "name",	  "to",	  "gap",    "depth", "pid",	"closed",
		"start",    "seconds",	  "peak", "delta",  "end",   "io_read", "disk_read",
		"io_write", "disk_write", "cpu",  "needed", "lane",  "group",	NULL};

	put_quantities(j, page->r);
	begin_usage_rows(j, "phases", keys, page->r);
	for (size_t i = 0; i < page->r->n_phases; i++) {
		if (render_wants_phase(page->options, &page->r->phases[i]))
			put_phase(j, page, i);
	}
	end_rows(j);
	json_member_u64(j, "lanes", page->layout.lanes);
}

static void put_process(struct json_writer *j, const struct recording *r,
			const struct recording_process *process)
{
	json_array(j);
	json_u64(j, process->pid);
	json_u64(j, process->ppid);
	put_shown(j, process->comm);
	put_shown(j, process->cmdline);
	put_secs(j, process->start_ns);
	if (process->ended)
		put_secs(j, process->end_ns);
	else
		json_plain(j, "null");
	json_u64(j, process->exit_code);
	json_u64(j, process->exit_signal);
	json_u64(j, process->peak_rss);
	put_usage(j, &process->usage);
	put_later(j, r, &process->usage);
	json_array_end(j);
}

/* Every process, in order: others refer to a process by its index. */
static void put_processes(struct json_writer *j, const struct recording *r)
{
	static const char *const keys[] = {"pid",	 "ppid",    "comm",	 "cmdline",
					   "start",	 "end",	    "exit_code", "exit_signal",
					   "peak",	 "io_read", "disk_read", "io_write",
					   "disk_write", "cpu",	    NULL};

	begin_usage_rows(j, "processes", keys, r);
	for (size_t i = 0; i < r->n_processes; i++)
		put_process(j, r, &r->processes[i]);
	end_rows(j);
}

static void put_metric(struct json_writer *j, const struct profile_metric *metric)
{
	key_shown(j, "name", metric->name);
	json_key(j, "value");
	if (metric->kind == PROFILE_INT)
		json_i64(j, metric->i);
	else if (metric->kind == PROFILE_UINT)
		json_u64(j, metric->u);
	else
		json_double(j, metric->kind == PROFILE_DOUBLE ? metric->d : NAN);
}

static void put_step(struct json_writer *j, const struct recording_step *step)
{
	json_array(j);
	put_secs(j, step->rel_ns);
	put_shown(j, step->step);
	json_u64(j, step->pid);
	json_u64(j, step->rss);
	json_u64(j, step->peak);
	json_u64(j, step->gpu);
	json_array(j);
	for (size_t i = 0; i < step->n_metrics; i++) {
		json_object(j);
		put_metric(j, &step->metrics[i]);
		json_object_end(j);
	}
	json_array_end(j);
	json_array_end(j);
}

static void put_steps(struct json_writer *j, const struct recording *r)
{
	static const char *const keys[] = {"time", "name", "pid",     "rss",
					   "peak", "gpu",  "metrics", NULL};

	begin_rows(j, "steps", keys);
	for (size_t i = 0; i < r->n_steps; i++)
		put_step(j, &r->steps[i]);
	end_rows(j);
}

static void put_quality(struct json_writer *j, const struct recording_quality *quality)
{
	static const char *const count_keys[] = {"count", "means", NULL};
	static const char *const warning_keys[] = {"what", "why", NULL};

	/* A thinned timeline lost nothing that counts: peaks stay. */
	begin_rows(j, "doubts", count_keys);
	for (size_t i = 0; i < quality->n_counts; i++) {
		const struct recording_count *count = &quality->counts[i];
		const char *means = quality_means(count->key);
		char text[1024];

		if (!count->count || !strcmp(count->key, "thinned_points"))
			continue;
		json_array(j);
		json_u64(j, count->count);
		units_counted(text, sizeof(text), count->count, means ? means : count->key);
		put_shown(j, strchr(text, ' ') + 1);
		json_array_end(j);
	}
	end_rows(j);
	begin_rows(j, "warnings", warning_keys);
	for (size_t i = 0; i < quality->n_warnings; i++) {
		json_array(j);
		put_shown(j, quality->warnings[i].what);
		put_shown(j, quality->warnings[i].why);
		json_array_end(j);
	}
	end_rows(j);
	key_array(j, "notes");
	for (size_t i = 0; i < quality->n_notes; i++)
		put_shown(j, quality->notes[i]);
	json_array_end(j);
}

static void put_palette(struct json_writer *j)
{
	static const char *const keys[] = {"name", "light", "dark", NULL};

	begin_rows(j, "palette", keys);
	for (size_t i = 0; i < PALETTE_COLOURS; i++) {
		json_array(j);
		json_text(j, palette[i].name);
		json_text(j, palette[i].light);
		json_text(j, palette[i].dark);
		json_array_end(j);
	}
	end_rows(j);
	key_array(j, "phase_colours");
	for (size_t i = 0; i < PALETTE_PHASES; i++)
		json_text(j, palette_phases[i]);
	json_array_end(j);
}

/* ---- The page ---- */

static void put_profile(struct page *page)
{
	static const char *const orders[] = {"start",	"peak",	    "delta", "seconds",
					     "io_read", "io_write", "cpu"};
	struct json_writer *j = &page->json;

	json_object(j);
	put_run(j, page);
	put_totals(j, page);
	put_peak(j, page);
	put_timeline(j, page->r);
	put_tracks(j, page->r);
	put_rates(j, page);
	put_marks(j, page->r);
	put_phases(j, page);
	put_processes(j, page->r);
	put_steps(j, page->r);
	put_quality(j, &page->r->quality);
	put_palette(j);
	json_key(j, "order");
	json_text(j, orders[page->options->order]);
	json_member_u64(j, "top", page->options->top);
	key_shown(j, "filter", page->options->phase);
	json_object_end(j);
}

static void put_title(struct page *page)
{
	const struct recording_run *run = &page->r->run;

	for (size_t i = 0; i < run->n_command; i++) {
		markup_text(page->out, run->command[i], 60);
		fputs(i + 1 < run->n_command ? " " : "", page->out);
	}
	if (!run->n_command)
		markup_text(page->out, source_name(page), 60);
	fputs(" - qprof-bpf", page->out);
}

/* A sentence for browsers without scripts. */
static void put_summary(struct page *page)
{
	const uint64_t ns = recording_peak_ns(page->r);
	char peak[UNITS_TEXT_MAX], when[UNITS_TEXT_MAX];
	const char *words;
	const struct recording_phase *phase =
		recording_where(page->r, ns, recording_peak_phase(page->r), &words);

	if (page->ending.is_bad) {
		markup_text(page->out, page->ending.text, ENDING_MAX);
		fputs(". ", page->out);
	}
	fprintf(page->out, "Peak %s at %s%s",
		units_bytes_for_people(peak, page->r->totals.peak_rss),
		units_time_for_people(when, ns), words);
	markup_text(page->out, phase ? phase->name : "", 100);
}

static void put_page(struct page *page)
{
	static const struct {
		const char *mark;
		void (*put)(struct page *page);
	} parts[] = {
		{"@TITLE@", put_title},
		{"@SUMMARY@", put_summary},
		{"@PROFILE@", put_profile},
	};
	const char *at = html_page;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *mark = strstr(at, parts[i].mark);

		fwrite(at, 1, (size_t)(mark - at), page->out);
		parts[i].put(page);
		at = mark + strlen(parts[i].mark);
	}
	fputs(at, page->out);
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	struct page page = {
		.r = r,
		.options = options,
		.needs = recording_needs_new(r),
		.out = out,
		.json = {.out = out},
	};
	bool is_ready;

	recording_ending(r, &page.ending);
	page.rates = rates_between_steps(r, MAX_RATES, &page.n_rates);
	is_ready = !layout_phases(&page.layout, r) && page.needs && page.rates;
	if (is_ready)
		put_page(&page);
	recording_needs_free(page.needs);
	free(page.rates);
	layout_free(&page.layout);
	return is_ready ? 0 : error_set(err, "not enough memory for the report");
}

const struct renderer renderer_html = {
	.name = "html",
	.extension = ".html",
	.what = "a page with charts for a browser, in one file",
	.render = render,
};
