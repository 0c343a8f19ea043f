/* SPDX-License-Identifier: GPL-2.0-only */
/* The ranks side by side in the text report, and who the others wait for. */
#include "report/ranks.h"
#include "report/text_report.h"

enum { RANKS, LOWEST, MEDIAN, HIGHEST, SLOWEST, CPU, CPU_OF, PEAK, PEAK_OF, N_CELLS };

static void fill(const struct rank_phase *phase, struct table_line *line)
{
	*line = (struct table_line){0};
	if (phase->occurrence > 1)
		snprintf(line->name, sizeof(line->name), "%s (%u)", phase->name, phase->occurrence);
	else
		snprintf(line->name, sizeof(line->name), "%s", phase->name);
	snprintf(line->cells[RANKS], UNITS_TEXT_MAX, "%zu", phase->n);
	units_time_for_people(line->cells[LOWEST], phase->time.lowest);
	units_time_for_people(line->cells[MEDIAN], phase->time.median);
	units_time_for_people(line->cells[HIGHEST], phase->time.highest);
	snprintf(line->cells[SLOWEST], UNITS_TEXT_MAX, "#%u", phase->time.highest_rank);
	if (phase->cpu.n) {
		units_time_for_people(line->cells[CPU], phase->cpu.highest);
		snprintf(line->cells[CPU_OF], UNITS_TEXT_MAX, "#%u", phase->cpu.highest_rank);
	}
	if (phase->peak.n) {
		units_bytes_short(line->cells[PEAK], phase->peak.highest);
		snprintf(line->cells[PEAK_OF], UNITS_TEXT_MAX, "#%u", phase->peak.highest_rank);
	}
}

static void put(const struct text_report *t, const struct ranks *ranks)
{
	static const char *const titles[] = {"RANKS",	 "LOWEST", "MEDIAN", "HIGHEST", "OF",
					     "MOST CPU", "OF",	   "PEAK",   "OF"};
	static const unsigned int leaving[] = {LOWEST, RANKS, PEAK_OF, PEAK};
	struct table_columns columns = {.titles = titles,
					.n = N_CELLS,
					.leaving = leaving,
					.n_leaving = sizeof(leaving) / sizeof(*leaving)};
	char sentence[RANKS_TEXT_MAX];
	struct table_line line;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < ranks->n_phases && i < t->top; i++) {
			fill(&ranks->phases[i], &line);
			if (pass)
				table_settled(&t->table, &columns, &line);
			else
				table_measure(&columns, &line);
		}
		if (!pass) {
			fputc('\n', t->table.out);
			table_settle(&t->table, &columns, "PHASES BY RANK");
		}
	}
	text_more(t, ranks->n_phases, "more phase(s)");
	for (size_t i = 0; i < ranks->n_phases && i < t->top; i++)
		if (ranks_sentence(sentence, &ranks->phases[i]))
			text_wrapped(t, "  ", sentence);
}

int text_ranks(const struct text_report *t)
{
	struct ranks ranks;

	if (ranks_make(&ranks, t->r))
		return -1;
	if (ranks.n > 1 && ranks.n_phases)
		put(t, &ranks);
	ranks_free(&ranks);
	return 0;
}
