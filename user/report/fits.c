/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/fits.h"

#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/table.h"
#include "format/by_name.h"
#include "format/least.h"
#include "report/renderer.h"

enum { WORDS_MAX = 1024 };

struct fits {
	const struct recording *r;
	uint64_t budget;
	struct recording_needs *needs;
	struct by_name *names;
	struct ending ending;
	bool allow_failed;
	bool is_known;	 /* the recording says what is needed */
	bool any_swap;	 /* at any time */
	uint64_t margin; /* how much more there may be between two points of the timeline */
};

/* What a stretch of the run needs. `most` has the margin. */
struct judged {
	struct recording_need need;
	enum fits_answer answer;
	bool for_ending; /* it would fit, had the run not ended badly */
};

/* ---- Judging ---- */

static int by_amount(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns how many processes there were at a time, at most; or 0 when out of memory. */
static size_t most_processes(const struct recording *r)
{
	uint64_t *starts = calloc(2 * r->n_processes + 1, sizeof(*starts));
	size_t most = 1, ended = 0;
	uint64_t *ends;

	if (!starts)
		return 0;
	ends = starts + r->n_processes;
	for (size_t i = 0; i < r->n_processes; i++) {
		starts[i] = r->processes[i].start_ns;
		ends[i] = r->processes[i].ended ? r->processes[i].end_ns : UINT64_MAX;
	}
	qsort(starts, r->n_processes, sizeof(*starts), by_amount);
	qsort(ends, r->n_processes, sizeof(*ends), by_amount);
	for (size_t i = 0; i < r->n_processes; i++) {
		while (ended < i && ends[ended] < starts[i])
			ended++;
		if (i + 1 - ended > most)
			most = i + 1 - ended;
	}
	free(starts);
	return most;
}

/* Each process sends a point when its RSS has moved by 256 KiB or a 256th of the tree. */
static uint64_t margin_of(const struct recording *r, size_t processes)
{
	uint64_t step = r->totals.peak_rss / 256;

	raise_to(&step, 256 << 10);
	/* Of a file that is sane; any other fits into nothing. */
	return step < 1ull << 40 ? processes * step : UINT64_MAX / 2;
}

struct fits *fits_new(const struct recording *r, uint64_t budget, bool allow_failed)
{
	const size_t processes = most_processes(r);
	struct fits *f = calloc(1, sizeof(*f));
	struct recording_need need;

	if (!f)
		return NULL;
	f->r = r;
	f->budget = budget;
	f->allow_failed = allow_failed;
	f->needs = recording_needs_new(r);
	f->names = by_name_new(r);
	if (!processes || !f->needs || !f->names) {
		fits_free(f);
		return NULL;
	}
	recording_ending(r, &f->ending);
	f->is_known = recording_need(f->needs, 0, UINT64_MAX, &need);
	f->margin = margin_of(r, processes);
	for (size_t i = 0; i < r->n_points; i++)
		f->any_swap |= r->points[i].swap != 0;
	return f;
}

void fits_free(struct fits *f)
{
	if (!f)
		return;
	recording_needs_free(f->needs);
	by_name_free(f->names);
	free(f);
}

/*
 * Returns how much there was at most, by what was charged to a cgroup of the run alone. That has
 * all that a process touches first, each page once, but not what is in swap.
 */
static uint64_t most_charged(const struct fits *f, const struct profile_charge_peak *peak)
{
	if (f->any_swap || !f->r->run.memory_cgroup_is_own || !peak->bytes || peak->at_least)
		return UINT64_MAX;
	return peak->bytes;
}

static struct judged judge(const struct fits *f, uint64_t from_ns, uint64_t to_ns,
			   uint64_t peak_rss, uint64_t charged, bool to_its_end)
{
	struct judged judged = {.answer = FITS_UNKNOWN};
	uint64_t most;

	if (!recording_need(f->needs, from_ns, to_ns, &judged.need))
		return judged;
	most = judged.need.most + f->margin;
	/* The peak is exact, and without swap there was no more than that. */
	if (!f->any_swap && peak_rss >= judged.need.most)
		most = smaller_of(most, peak_rss);
	most = smaller_of(most, charged);
	/* Shared memory of other programs, say, is charged to those. */
	if (judged.need.knows_least)
		raise_to(&most, judged.need.least);
	judged.need.most = most;
	if (judged.need.knows_least && judged.need.least > f->budget)
		judged.answer = FITS_NO;
	else if (most <= f->budget)
		judged.answer = FITS_YES;
	if (judged.answer == FITS_YES && !to_its_end && f->ending.is_bad && !f->allow_failed) {
		judged.answer = FITS_UNKNOWN;
		judged.for_ending = true;
	}
	return judged;
}

static struct judged judge_run(const struct fits *f)
{
	const struct recording_totals *totals = &f->r->totals;

	return judge(f, 0, UINT64_MAX, totals->peak_rss, most_charged(f, &totals->charge_peak),
		     false);
}

static struct judged judge_phase(const struct fits *f, const struct recording_phase *phase)
{
	return judge(f, phase->start_ns, phase->start_ns + phase->duration_ns, phase->peak_rss,
		     most_charged(f, &phase->charge_peak), phase->closed);
}

enum fits_answer fits_answer(const struct fits *f)
{
	return judge_run(f).answer;
}

/* Sets *ns to when more was needed for the first time. Returns false if that is not known. */
static bool first_over(const struct fits *f, uint64_t *ns)
{
	for (size_t i = 0; i < f->r->n_points; i++) {
		const struct recording_point *point = &f->r->points[i];
		const uint64_t most = point->anon + point->shmem + point->swap;

		if (since(point->inherited + point->repeated_shmem, most) > f->budget) {
			*ns = point->time_ns;
			return true;
		}
	}
	return false;
}

/* ---- Words ---- */

static const char *answer_word(enum fits_answer answer)
{
	return answer == FITS_YES ? "yes" : answer == FITS_NO ? "no" : "unknown";
}

/* "; the first time at 3.0 s, in Quantize > layer 3" */
static void first_words(const struct fits *f, char *out, size_t size)
{
	const struct recording_phase *phase;
	char when[UNITS_TEXT_MAX];
	const char *words, *path;
	uint64_t ns;

	if (!first_over(f, &ns))
		return;
	phase = recording_where(f->r, ns, recording_phase_at(f->r, ns), &words);
	path = by_name_path(f->names, phase);
	snprintf(out, size, "; the first time at %s%s%.600s", units_time_for_people(when, ns),
		 words, path ? path : "");
}

/* One sentence with the answer for the whole run, and why. */
static void sentence(const struct fits *f, char out[WORDS_MAX])
{
	const struct judged run = judge_run(f);
	char budget[UNITS_TEXT_MAX], least[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];
	char rest[UNITS_TEXT_MAX], first[WORDS_MAX - 256] = "";

	units_bytes_for_people(budget, f->budget);
	units_bytes_for_people(least, run.need.least);
	units_bytes_for_people(most, run.need.most);
	if (run.answer == FITS_YES) {
		snprintf(out, WORDS_MAX, "Fits into %s: needs at most %s, which leaves %s", budget,
			 most, units_bytes_for_people(rest, f->budget - run.need.most));
	} else if (run.answer == FITS_NO) {
		first_words(f, first, sizeof(first));
		snprintf(out, WORDS_MAX,
			 "Does NOT fit into %s: needs at least %s, which is %s more%s", budget,
			 least, units_bytes_for_people(rest, run.need.least - f->budget), first);
	} else if (!f->is_known) {
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into %s: the profile has no "
			 "timeline of its memory",
			 budget);
	} else if (run.for_ending) {
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into %s: it had at most %s, but "
			 "did not end well (--allow-failed)",
			 budget, most);
	} else if (!run.need.knows_least) {
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into %s: it needs at most %s, "
			 "and the profile does not say how much at least",
			 budget, most);
	} else {
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into %s: it needs at least %s, at most %s; "
			 "processes may share shmem and what they inherited at fork",
			 budget, least, most);
	}
}

/* ---- Text ---- */

static void fill_line(const struct fits *f, const struct judged *judged, struct table_line *line)
{
	const struct recording_need *need = &judged->need;

	for (unsigned int i = 0; i < 3; i++)
		snprintf(line->cells[i], UNITS_TEXT_MAX, "-");
	if (need->knows_least)
		units_bytes_for_people(line->cells[0], need->least);
	if (f->is_known)
		units_bytes_for_people(line->cells[1], need->most);
	if (judged->answer == FITS_NO)
		units_delta_for_people(line->cells[2], need->least, f->budget);
	else if (judged->answer == FITS_YES)
		units_delta_for_people(line->cells[2], need->most, f->budget);
	snprintf(line->cells[3], UNITS_TEXT_MAX, "%s", answer_word(judged->answer));
}

static void put_line(const struct fits *f, const struct table *table, const char *name,
		     unsigned int depth, const struct judged *judged)
{
	struct table_line line = {.indent = 2 * depth};

	snprintf(line.name, sizeof(line.name), "%s", name);
	fill_line(f, judged, &line);
	if (judged->answer != FITS_YES)
		table_tone(table, WARNING);
	table_line(table, &line, 4);
	if (judged->answer != FITS_YES)
		table_tone(table, PLAIN);
}

static void put_phases(const struct fits *f, const struct render_options *options,
		       const struct table *table)
{
	for (size_t i = 0; i < f->r->n_phases; i++) {
		const struct recording_phase *phase = &f->r->phases[i];
		const struct judged judged = judge_phase(f, phase);

		if (render_wants_phase(options, phase))
			put_line(f, table, phase->shown, phase->depth, &judged);
	}
}

void fits_text(const struct fits *f, const char *pattern, unsigned int width, bool colour,
	       FILE *out)
{
	static const char *const titles[] = {"AT LEAST", "AT MOST", "SPARE", "FITS"};
	const struct render_options options = {.phase = pattern};
	const struct judged run = judge_run(f);
	const struct table table = {.out = out,
				    .width = table_width(width, MAX_WIDTH),
				    .min_name = 20,
				    .max_name = 60,
				    .colour = colour};
	char words[WORDS_MAX], budget[UNITS_TEXT_MAX], title[UNITS_TEXT_MAX + 16];
	char files[UNITS_TEXT_MAX];

	sentence(f, words);
	table_tone(&table, run.answer == FITS_YES ? BOLD : WARNING);
	table_wrapped(&table, "", words);
	table_tone(&table, PLAIN);
	if (!f->is_known)
		return;
	snprintf(words, sizeof(words),
		 "RAM and swap together, for anon and shmem; up to %s of mapped files beside it "
		 "can be "
		 "dropped and read again%s",
		 units_bytes_for_people(files, run.need.files),
		 f->r->totals.peak_hugetlb ? "; hugetlb memory comes on top" : "");
	table_wrapped(&table, "", words);
	fputc('\n', out);
	snprintf(title, sizeof(title), "FITS INTO %s", units_bytes_for_people(budget, f->budget));
	table_titles(&table, title, titles, 4);
	put_phases(f, &options, &table);
	put_line(f, &table, "The whole run", 0, &run);
}

/* ---- JSON ---- */

static void put_mb(struct json_writer *j, const char *key, uint64_t bytes, bool is_known)
{
	char text[UNITS_TEXT_MAX];

	json_key(j, key);
	json_plain(j, is_known ? units_mb(text, bytes) : "null");
}

static void put_judged(const struct fits *f, const struct judged *judged, struct json_writer *j)
{
	json_member_text(j, "fits", answer_word(judged->answer));
	put_mb(j, "needed_at_least_mb", judged->need.least, judged->need.knows_least);
	put_mb(j, "needed_at_most_mb", judged->need.most, f->is_known);
}

void fits_json(const struct fits *f, const char *pattern, struct json_writer *j)
{
	const struct render_options options = {.phase = pattern};
	const struct judged run = judge_run(f);
	char words[WORDS_MAX], when[UNITS_TEXT_MAX];
	uint64_t ns;

	put_mb(j, "budget_mb", f->budget, true);
	put_judged(f, &run, j);
	sentence(f, words);
	json_member_text(j, "why", words);
	json_key(j, "first_over_secs");
	json_plain(j,
		   run.answer == FITS_NO && first_over(f, &ns) ? units_secs(when, ns, 6) : "null");
	json_key(j, "phases");
	json_array(j);
	for (size_t i = 0; i < f->r->n_phases; i++) {
		const struct recording_phase *phase = &f->r->phases[i];
		const struct judged judged = judge_phase(f, phase);

		if (!render_wants_phase(&options, phase))
			continue;
		json_compact(j);
		json_object(j);
		json_member_text(j, "name", phase->shown);
		json_key(j, "index");
		json_u64(j, i);
		put_judged(f, &judged, j);
		json_object_end(j);
	}
	json_array_end(j);
}
