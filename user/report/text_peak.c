/* SPDX-License-Identifier: GPL-2.0-only */
/* The text report's head: the peak, memory over time, and what the run needs. */
#include "report/text_report.h"

#include <string.h>

#include "format/charged.h"
#include "format/gpus.h"
#include "format/least.h"

enum {
	TOP_SHARES = 3, /* processes named at the peak */
	N_KINDS = 3,
};

/* ---- What the peak was made of ---- */

struct kind {
	const char *name;
	uint64_t bytes;
};

/* The largest first; equal ones stay in their order. */
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

/* "   182 MiB  71 %  anon: heap, stacks, private copies" */
static void put_amount(const struct text_report *t, uint64_t bytes, uint64_t of, const char *what)
{
	char text[UNITS_TEXT_MAX], share[UNITS_TEXT_MAX];

	text_percent(share, bytes, of);
	fprintf(t->table.out, "%*s%10s %5s  ", INDENT, "", units_bytes_for_people(text, bytes),
		share);
	table_name(&t->table, what, t->table.width - INDENT - 18, false);
	fputc('\n', t->table.out);
}

static void put_kinds(const struct text_report *t)
{
	const struct recording_peak *peak = &t->r->peak;
	struct kind kinds[N_KINDS] = {
		{"anon: heap, stacks, private copies", peak->anon},
		{"file: pages of mapped files", peak->file},
		{"shmem: shared memory, tmpfs", peak->shmem},
	};
	const uint64_t sum = peak->anon + peak->file + peak->shmem;

	sort_kinds(kinds);
	for (size_t i = 0; i < N_KINDS; i++) {
		if (kinds[i].bytes)
			put_amount(t, kinds[i].bytes, sum, kinds[i].name);
	}
	if (peak->swap)
		put_amount(t, peak->swap, 0, "swap, beside it");
}

static void put_shares(const struct text_report *t)
{
	const struct recording_peak *peak = &t->r->peak;
	const uint64_t sum = peak->anon + peak->file + peak->shmem;
	char name[MAX_WIDTH];
	uint64_t rest = 0;

	for (size_t i = 0; i < peak->n_shares; i++) {
		if (i >= TOP_SHARES) {
			rest += share_rss(&peak->shares[i]);
			continue;
		}
		text_process_name(name, sizeof(name), &t->r->processes[peak->shares[i].process]);
		put_amount(t, share_rss(&peak->shares[i]), sum, name);
	}
	if (peak->n_shares <= TOP_SHARES)
		return;
	units_counted(name, sizeof(name), peak->n_shares - TOP_SHARES, "other process(es)");
	put_amount(t, rest, sum, name);
}

/* ---- When it was ---- */

/* ", in Calibration". So many columns of the line are taken already. */
static void put_where(const struct text_report *t, int taken, const struct recording_phase *phase,
		      const char *words)
{
	taken += fprintf(t->table.out, "%s", words);
	if (phase)
		table_name(&t->table, by_name_path(t->names, phase),
			   t->table.width - (unsigned int)taken, false);
}

/* Where memory got that high often says more than where it was highest. */
static void put_plateau(const struct text_report *t, uint64_t peak_ns)
{
	const uint64_t ns = recording_plateau_ns(t->r);
	const struct recording_phase *phase = recording_phase_at(t->r, ns);
	char when[UNITS_TEXT_MAX];
	const char *words;
	int taken;

	if (ns >= peak_ns || phase == t->peak_phase)
		return;
	phase = recording_where(t->r, ns, phase, &words);
	taken = fprintf(t->table.out, "%*s99 %% of it first at %s", INDENT, "",
			units_time_for_people(when, ns));
	put_where(t, taken, phase, words);
	fputc('\n', t->table.out);
}

void text_peak(const struct text_report *t)
{
	const struct recording *r = t->r;
	char peak[UNITS_TEXT_MAX], when[UNITS_TEXT_MAX], least[LEAST_WORDS_MAX];
	const char *words;
	const struct recording_phase *phase = recording_where_peak(r, &words);
	uint64_t ns;
	const bool is_known = recording_peak_time(r, &ns);
	const char *at = is_known ? " at" : "; the file does not say when, its highest step is at";
	int taken;

	fputc('\n', t->table.out);
	table_tone(&t->table, BOLD);
	units_time_for_people(when, ns);
	taken = fprintf(t->table.out, "Peak %s%s %s",
			units_bytes_for_people(peak, r->totals.peak_rss), at, when);
	if (is_known)
		put_where(t, taken, phase, words);
	table_tone(&t->table, PLAIN);
	fputc('\n', t->table.out);
	if (least_of_peak(least, &r->peak, r->totals.peak_rss, true))
		text_wrapped(t, "  ", least);
	put_plateau(t, ns);
	if (!r->peak.has)
		return;
	put_kinds(t);
	put_shares(t);
}

/* ---- GPUs ---- */

static void put_gpus(const struct text_report *t)
{
	char words[GPUS_WORDS_MAX];

	if (gpus_held_words(words, &t->r->totals))
		text_wrapped(t, "GPU memory: ", words);
	for (size_t i = 0; i < t->r->n_gpus; i++) {
		if (gpus_device_words(words, &t->r->gpus[i]))
			text_wrapped(t, "GPU ", words);
	}
	if (gpus_refusal_words(words, t->r))
		text_wrapped(t, "GPU memory: ", words);
}

/* ---- Will it fit ---- */

void text_needs(const struct text_report *t)
{
	const struct recording_totals *totals = &t->r->totals;
	char line[LEAST_WORDS_MAX + 128], needed[LEAST_WORDS_MAX], text[UNITS_TEXT_MAX];
	char charged[CHARGED_WORDS_MAX];
	struct recording_need need;

	if (recording_need(t->needs, 0, UINT64_MAX, &need)) {
		least_of_need(needed, &need, t->ending->is_killed);
		snprintf(line, sizeof(line),
			 "%s; up to %s of mapped files beside it can be dropped and read again",
			 needed, units_bytes_for_people(text, need.files));
		text_wrapped(t, "", line);
	}
	if (charged_words(charged, t->r, t->ending->is_killed))
		text_wrapped(t, "", charged);
	if (totals->peak_hugetlb)
		fprintf(t->table.out, "Hugetlb memory beside it: %s or more\n",
			units_bytes_for_people(text, totals->peak_hugetlb));
	put_gpus(t);
}
