/* SPDX-License-Identifier: GPL-2.0-only */
/* The page's table of ranks side by side. */
#include "report/html_parts.h"
#include "report/ranks.h"

static void put_figure(struct json_writer *j, const struct rank_figure *figure, bool is_time)
{
	const uint64_t values[] = {figure->lowest, figure->median, figure->highest};

	for (size_t i = 0; i < 3; i++) {
		if (!figure->n)
			json_plain(j, "null");
		else if (is_time)
			html_secs(j, values[i]);
		else
			json_u64(j, values[i]);
	}
	if (figure->n)
		json_u64(j, figure->highest_rank);
	else
		json_plain(j, "null");
}

void html_ranks(struct html_page *page)
{
	static const char *const keys[] = {
		"name",	   "occurrence", "ranks",   "time_low", "time",	   "time_high",
		"slowest", "cpu_low",	 "cpu",	    "cpu_high", "busiest", "peak_low",
		"peak",	   "peak_high",	 "largest", "waits",	NULL};
	struct json_writer *j = &page->json;
	char sentence[RANKS_TEXT_MAX];
	struct ranks ranks;

	if (ranks_make(&ranks, page->r) || ranks.n < 2 || !ranks.n_phases) {
		ranks_free(&ranks);
		return;
	}
	html_rows(j, "ranks", keys);
	for (size_t i = 0; i < ranks.n_phases; i++) {
		const struct rank_phase *phase = &ranks.phases[i];

		json_array(j);
		html_shown(j, phase->name);
		json_u64(j, phase->occurrence);
		json_u64(j, phase->n);
		put_figure(j, &phase->time, true);
		put_figure(j, &phase->cpu, true);
		put_figure(j, &phase->peak, false);
		html_shown(j, ranks_sentence(sentence, phase));
		json_array_end(j);
	}
	html_rows_end(j);
	ranks_free(&ranks);
}
