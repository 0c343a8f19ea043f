/* SPDX-License-Identifier: GPL-2.0-only */
/* The page's bars of where the time of all threads went, phase by phase. */
#include "format/shares.h"
#include "format/waits.h"
#include "report/html_parts.h"

/* A profile of others knows CPU time alone: no bar would say anything. */
static bool has_waits(const struct recording *r)
{
	const struct profile_usage *usage = &r->totals.usage;
	uint64_t share[N_SHARES];

	return shares_of(share, usage) > usage->cpu_ns;
}

static void put_kinds(struct json_writer *j)
{
	static const char *const keys[] = {"title", "means", "colour", NULL};

	html_rows(j, "thread_kinds", keys);
	for (int i = 0; i < N_SHARES; i++) {
		json_array(j);
		json_text(j, share_words[i].words);
		json_text(j, share_words[i].means);
		json_text(j, share_words[i].colour);
		json_array_end(j);
	}
	html_rows_end(j);
}

static void put_bar(struct json_writer *j, const struct html_page *page,
		    const struct recording_phase *phase, size_t number)
{
	char slow[WAITS_TEXT_MAX];
	uint64_t share[N_SHARES];

	if (!render_wants_phase(page->options, phase) || !shares_of(share, &phase->usage) ||
	    !shares_known(page->r, phase))
		return;
	json_array(j);
	json_u64(j, number);
	html_shown(j, phase->shown);
	html_bool(j, phase->kind == PROFILE_PHASE_GAP);
	json_u64(j, phase->level);
	html_secs(j, phase->start_ns);
	html_shown(j, waits_phase_sentence(slow, page->r, phase) ? slow : NULL);
	json_array(j);
	for (int i = 0; i < N_SHARES; i++)
		html_secs(j, share[i]);
	json_array_end(j);
	json_array_end(j);
}

void html_threads(struct html_page *page)
{
	static const char *const keys[] = {"number", "name", "gap",   "depth",
					   "start",  "slow", "parts", NULL};
	const struct recording *r = page->r;
	struct json_writer *j = &page->json;

	if (!has_waits(r))
		return;
	put_kinds(j);
	html_rows(j, "threads", keys);
	for (size_t i = 0; i < r->n_phases; i++)
		put_bar(j, page, &r->phases[i], i + 1);
	for (size_t i = 0; i < r->n_outside; i++)
		put_bar(j, page, &r->outside[i], 0);
	html_rows_end(j);
}
