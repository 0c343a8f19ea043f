/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of the page: what a run has many of. */
#include <stddef.h>
#include <string.h>

#include "report/html_parts.h"
#include "report/palette.h"
#include "base/units.h"
#include "format/quality.h"
#include "format/quantities.h"

/* ---- Later quantities: the page has a column for each that the profile has ---- */

static bool is_shown(const struct quantity *quantity, const struct recording *r)
{
	return quantity->column && quantity_of(quantity, &r->totals.usage);
}

/* Begins a table whose rows end with put_later(). */
static void begin_usage_rows(struct json_writer *j, const char *name, const char *const *keys,
			     const struct recording *r)
{
	html_keys(j, name, keys);
	for (int i = 0; i < N_QUANTITIES; i++) {
		if (is_shown(&quantities[i], r))
			json_text(j, quantities[i].stem);
	}
	html_keys_end(j);
}

static void put_one(struct json_writer *j, const struct quantity *quantity,
		    const struct profile_usage *usage)
{
	if (quantity->unit == QUANTITY_NS)
		html_secs(j, quantity_of(quantity, usage));
	else
		json_u64(j, quantity_of(quantity, usage));
}

static void put_later(struct json_writer *j, const struct recording *r,
		      const struct profile_usage *usage)
{
	for (int i = 0; i < N_QUANTITIES; i++) {
		if (is_shown(&quantities[i], r))
			put_one(j, &quantities[i], usage);
	}
}

void html_later_members(struct json_writer *j, const struct recording *r,
			const struct profile_usage *usage)
{
	for (int i = 0; i < N_QUANTITIES; i++) {
		if (is_shown(&quantities[i], r)) {
			json_key(j, quantities[i].stem);
			put_one(j, &quantities[i], usage);
		}
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
			html_rows(j, "quantities", keys);
		any = true;
		json_array(j);
		json_text(j, q->stem);
		json_text(j, q->column);
		json_text(j, q->words);
		json_text(j, units[q->unit]);
		json_array_end(j);
	}
	if (any)
		html_rows_end(j);
}

/* As columns, which charts take. `unsplit` is memory of which the kind is not known. */
static void put_timeline(struct json_writer *j, const struct recording *r)
{
#define COLUMN(key, type, items, n, member)                                                        \
	html_column(j, key, items, n, sizeof(type), offsetof(type, member))
	typedef struct recording_point point;

	html_member_object(j, "timeline");
	html_time_column(j, r->points, r->n_points, sizeof(point), offsetof(point, time_ns));
	COLUMN("anon", point, r->points, r->n_points, anon);
	COLUMN("shmem", point, r->points, r->n_points, shmem);
	COLUMN("file", point, r->points, r->n_points, file);
	COLUMN("swap", point, r->points, r->n_points, swap);
	html_member_array(j, "unsplit");
	for (size_t i = 0; i < r->n_points; i++) {
		const point *p = &r->points[i];

		json_u64(j, recording_point_rss(p) - p->file - p->anon - p->shmem);
	}
	json_array_end(j);
	json_object_end(j);
}

/* Without a GPU there is none. */
static void put_gpu_timeline(struct json_writer *j, const struct recording *r)
{
	typedef struct recording_gpu_point point;

	if (!r->n_gpu_curve)
		return;
	html_member_object(j, "gpu_timeline");
	html_time_column(j, r->gpu_curve, r->n_gpu_curve, sizeof(point), offsetof(point, time_ns));
	COLUMN("held", point, r->gpu_curve, r->n_gpu_curve, held);
	COLUMN("highest", point, r->gpu_curve, r->n_gpu_curve, highest);
	COLUMN("pinned", point, r->gpu_curve, r->n_gpu_curve, pinned);
	json_object_end(j);
}

static void put_tracks(struct json_writer *j, const struct recording *r)
{
	typedef struct recording_track_point point;

	html_member_object(j, "tracks");
	html_member_array(j, "process");
	for (size_t i = 0; i < r->n_tracks; i++)
		json_u64(j, r->tracks[i].process);
	json_array_end(j);
	html_time_column(j, r->tracks, r->n_tracks, sizeof(point), offsetof(point, time_ns));
	COLUMN("anon", point, r->tracks, r->n_tracks, anon);
	COLUMN("shmem", point, r->tracks, r->n_tracks, shmem);
	COLUMN("file", point, r->tracks, r->n_tracks, file);
	json_object_end(j);
#undef COLUMN
}

static void put_rates(struct json_writer *j, const struct html_page *page)
{
	static const char *const keys[] = {"start",    "end",	     "io_read", "disk_read",
					   "io_write", "disk_write", "cpu",	NULL};

	json_key(j, "has_curve");
	html_bool(j, rates_have_curve(page->r));
	html_rows(j, "rates", keys);
	for (size_t i = 0; i < page->n_rates; i++) {
		json_array(j);
		html_secs(j, page->rates[i].start_ns);
		html_secs(j, page->rates[i].end_ns);
		html_usage(j, &page->rates[i].usage);
		json_array_end(j);
	}
	html_rows_end(j);
}

/* The marks: each gap but the first begins with a mark, the first with the run. */
static void put_marks(struct json_writer *j, const struct recording *r)
{
	static const char *const keys[] = {"time", "name", NULL};
	bool first = true;

	html_rows(j, "marks", keys);
	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (phase->kind != PROFILE_PHASE_GAP)
			continue;
		if (!first) {
			json_array(j);
			html_secs(j, phase->start_ns);
			html_shown(j, phase->name);
			json_array_end(j);
		}
		first = false;
	}
	html_rows_end(j);
}

/* The process that began the phase, alone. One process alone is the tree: nothing is said of it. */
static void put_own(struct json_writer *j, const struct recording *r,
		    const struct recording_phase *phase)
{
	const bool several = r->n_processes > 1;

	if (several && phase->knows.own_peak)
		json_u64(j, phase->own_peak);
	else
		json_plain(j, "null");
	if (several && phase->knows.own_delta)
		json_i64(j, phase->own_delta);
	else
		json_plain(j, "null");
	if (several && phase->knows.own_usage) {
		html_secs(j, phase->own_usage.cpu_ns);
		json_u64(j, phase->own_usage.io_read);
		json_u64(j, phase->own_usage.io_write);
		return;
	}
	for (int i = 0; i < 3; i++)
		json_plain(j, "null");
}

/* Time in no phase has the number 0, and no place in a picture. */
static void put_phase(struct json_writer *j, const struct html_page *page,
		      const struct recording_phase *phase, size_t number,
		      const struct layout_place *place)
{
	struct recording_need need;
	const bool is_known =
		phase->stretches < 2 && recording_need(page->needs, phase->start_ns,
						       phase->start_ns + phase->duration_ns, &need);

	json_array(j);
	json_u64(j, number);
	html_shown(j, phase->shown);
	html_bool(j, phase->kind == PROFILE_PHASE_GAP);
	json_u64(j, phase->level);
	json_u64(j, phase->pid);
	html_bool(j, phase->closed);
	html_bool(j, phase->buffered);
	html_secs(j, phase->start_ns);
	html_secs(j, phase->duration_ns);
	json_u64(j, phase->peak_rss);
	json_i64(j, phase->delta_rss);
	json_u64(j, phase->end_rss);
	json_u64(j, phase->peak_gpu);
	json_i64(j, phase->delta_gpu);
	json_u64(j, phase->peak_pinned);
	html_usage(j, &phase->usage);
	if (is_known)
		json_u64(j, need.most);
	else
		json_plain(j, "null");
	if (is_known && need.knows_least)
		json_u64(j, need.least);
	else
		json_plain(j, "null");
	put_own(j, page->r, phase);
	json_u64(j, place->lane);
	json_u64(j, place->group);
	put_later(j, page->r, &phase->usage);
	json_array_end(j);
}

static void begin_phases(struct json_writer *j, const char *name, const struct html_page *page)
{
	static const char *const keys[] = {
		"number",     "name",	   "gap",	"depth",   "pid",	"closed",
		"buffered",   "start",	   "seconds",	"peak",	   "delta",	"end",
		"gpu",	      "gpu_delta", "pinned",	"io_read", "disk_read", "io_write",
		"disk_write", "cpu",	   "needed",	"least",   "own_peak",	"own_delta",
		"own_cpu",    "own_read",  "own_write", "lane",	   "group",	NULL};

	begin_usage_rows(j, name, keys, page->r);
}

static void put_phases(struct json_writer *j, const struct html_page *page)
{
	static const struct layout_place nowhere = {.lane = LAYOUT_LANES};
	const struct recording *r = page->r;

	put_quantities(j, r);
	begin_phases(j, "phases", page);
	for (size_t i = 0; i < r->n_phases; i++) {
		if (render_wants_phase(page->options, &r->phases[i]))
			put_phase(j, page, &r->phases[i], i + 1, &page->layout.places[i]);
	}
	html_rows_end(j);
	if (r->n_outside)
		begin_phases(j, "outside", page);
	for (size_t i = 0; i < r->n_outside; i++) {
		if (render_wants_phase(page->options, &r->outside[i]))
			put_phase(j, page, &r->outside[i], 0, &nowhere);
	}
	if (r->n_outside)
		html_rows_end(j);
	json_member_u64(j, "lanes", page->layout.lanes);
}

/* The same phases by name. */
static void put_named(struct json_writer *j, const struct html_page *page)
{
	static const char *const keys[] = {"name",	"count",    "seconds",	  "mean", "peak",
					   "number",	"path",	    "delta",	  "gap",  "io_read",
					   "disk_read", "io_write", "disk_write", "cpu",  NULL};
	const struct recording *r = page->r;
	const struct recording_named *rows;
	size_t n;

	rows = by_name_rows(page->by_name, &n);
	if (n == r->n_phases) /* each name is there once */
		return;
	json_member_bool(j, "by_name", page->options->by_name);
	begin_usage_rows(j, "named", keys, page->r);
	for (size_t i = 0; i < n; i++) {
		const struct recording_phase *highest = &r->phases[rows[i].peak_index];

		if (!render_wants_phase(page->options, highest))
			continue;
		json_array(j);
		html_shown(j, rows[i].name);
		json_u64(j, rows[i].count);
		html_secs(j, rows[i].total_ns);
		html_secs(j, rows[i].mean_ns);
		json_u64(j, rows[i].peak_rss);
		json_u64(j, rows[i].peak_index + 1);
		html_shown(j, rows[i].peak_path);
		json_i64(j, rows[i].delta_rss);
		html_bool(j, highest->kind == PROFILE_PHASE_GAP);
		html_usage(j, &rows[i].usage);
		put_later(j, r, &rows[i].usage);
		json_array_end(j);
	}
	html_rows_end(j);
}

static void put_process(struct json_writer *j, const struct recording *r,
			const struct recording_process *process)
{
	json_array(j);
	json_u64(j, process->pid);
	json_u64(j, process->ppid);
	html_shown(j, process->comm);
	html_shown(j, process->cmdline);
	html_secs(j, process->start_ns);
	if (process->ended)
		html_secs(j, process->end_ns);
	else
		json_plain(j, "null");
	json_u64(j, process->exit_code);
	json_u64(j, process->exit_signal);
	json_u64(j, process->peak_rss);
	json_u64(j, process->peak_gpu);
	json_u64(j, process->peak_pinned);
	html_usage(j, &process->usage);
	put_later(j, r, &process->usage);
	json_array_end(j);
}

/* Every process, in order: others refer to a process by its index. */
static void put_processes(struct json_writer *j, const struct recording *r)
{
	static const char *const keys[] = {
		"pid",	     "ppid",	    "comm",	  "cmdline", "start",  "end",
		"exit_code", "exit_signal", "peak",	  "gpu",     "pinned", "io_read",
		"disk_read", "io_write",    "disk_write", "cpu",     NULL};

	begin_usage_rows(j, "processes", keys, r);
	for (size_t i = 0; i < r->n_processes; i++)
		put_process(j, r, &r->processes[i]);
	html_rows_end(j);
}

/* As text: a script has no whole numbers of 64 bits, and JSON no NaN. */
static void put_metric_value(struct json_writer *j, const struct profile_metric *metric)
{
	char text[UNITS_TEXT_MAX];

	json_text(j, metric_text(text, metric));
}

static void put_metric(struct json_writer *j, const struct profile_metric *metric)
{
	html_member_shown(j, "name", metric->name);
	json_key(j, "value");
	put_metric_value(j, metric);
}

static void put_reported(struct json_writer *j, const struct html_page *page)
{
	static const char *const keys[] = {"name",  "last",   "of_run",	 "time",
					   "times", "lowest", "highest", NULL};
	const struct recording *r = page->r;

	html_rows(j, "metrics", keys);
	for (size_t i = 0; i < page->n_metrics; i++) {
		const struct reported *metric = &page->metrics[i];

		json_array(j);
		html_shown(j, metric->name);
		put_metric_value(j, &metric->last);
		html_bool(j, metric->of_run);
		html_secs(j, metric->last_ns);
		json_u64(j, metric->count);
		put_metric_value(j, &metric->lowest);
		put_metric_value(j, &metric->highest);
		json_array_end(j);
	}
	html_rows_end(j);
	html_member_array(j, "definitions");
	for (size_t i = 0; i < r->n_definitions; i++)
		html_shown(j, r->definitions[i]);
	json_array_end(j);
}

static void put_step(struct json_writer *j, const struct recording_step *step)
{
	json_array(j);
	html_secs(j, step->rel_ns);
	html_shown(j, step->step);
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

	html_rows(j, "steps", keys);
	for (size_t i = 0; i < r->n_steps; i++)
		put_step(j, &r->steps[i]);
	html_rows_end(j);
}

static void put_quality(struct json_writer *j, const struct recording_quality *quality)
{
	static const char *const count_keys[] = {"count", "means", NULL};
	static const char *const warning_keys[] = {"what", "why", NULL};

	/* A thinned timeline lost nothing that counts: peaks stay. */
	html_rows(j, "doubts", count_keys);
	for (size_t i = 0; i < quality->n_counts; i++) {
		const struct recording_count *count = &quality->counts[i];
		const char *means = quality_means(count->key);
		char text[1024];

		if (!count->count || !strcmp(count->key, "thinned_points"))
			continue;
		json_array(j);
		json_u64(j, count->count);
		units_counted(text, sizeof(text), count->count, means ? means : count->key);
		html_shown(j, strchr(text, ' ') + 1);
		json_array_end(j);
	}
	html_rows_end(j);
	html_rows(j, "warnings", warning_keys);
	for (size_t i = 0; i < quality->n_warnings; i++) {
		json_array(j);
		html_shown(j, quality->warnings[i].what);
		html_shown(j, quality->warnings[i].why);
		json_array_end(j);
	}
	html_rows_end(j);
	html_member_array(j, "notes");
	for (size_t i = 0; i < quality->n_notes; i++)
		html_shown(j, quality->notes[i]);
	json_array_end(j);
}

static void put_palette(struct json_writer *j)
{
	static const char *const keys[] = {"name", "light", "dark", NULL};

	html_rows(j, "palette", keys);
	for (size_t i = 0; i < PALETTE_COLOURS; i++) {
		json_array(j);
		json_text(j, palette[i].name);
		json_text(j, palette[i].light);
		json_text(j, palette[i].dark);
		json_array_end(j);
	}
	html_rows_end(j);
	html_member_array(j, "phase_colours");
	for (size_t i = 0; i < PALETTE_PHASES; i++)
		json_text(j, palette_phases[i]);
	json_array_end(j);
}

void html_tables(struct html_page *page)
{
	struct json_writer *j = &page->json;

	put_timeline(j, page->r);
	put_gpu_timeline(j, page->r);
	put_tracks(j, page->r);
	put_rates(j, page);
	put_marks(j, page->r);
	put_phases(j, page);
	put_named(j, page);
	html_threads(page);
	html_ranks(page);
	html_files(page);
	html_spaces(page);
	html_disks(page);
	html_windows(page);
	html_stacks(page);
	put_processes(j, page->r);
	put_steps(j, page->r);
	put_reported(j, page);
	put_quality(j, &page->r->quality);
	put_palette(j);
}
