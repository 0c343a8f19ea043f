/* SPDX-License-Identifier: GPL-2.0-only */
/* How much room the file systems had that were written to, and what temporary files took of it. */
#include "report/spaces.h"
#include "report/text_report.h"

enum { SIZE, LEFT, LEAST, AT, WRITTEN, REMOVED, N_CELLS };

static void fill(const struct recording_space *space, struct table_line *line)
{
	*line = (struct table_line){0};
	snprintf(line->name, sizeof(line->name), "%s", space->path);
	units_bytes_short(line->cells[SIZE], space->size);
	if (space_has_last(space))
		units_bytes_short(line->cells[LEFT], space->last);
	units_bytes_short(line->cells[LEAST], space->least);
	units_time_for_people(line->cells[AT], space->least_ns);
	units_bytes_short(line->cells[WRITTEN], space->written);
	if (space->removed)
		units_bytes_short(line->cells[REMOVED], space->removed);
}

static void put_table(const struct text_report *t)
{
	static const char *const titles[] = {"SIZE", "LEFT", "LEAST", "AT", "WRITTEN", "REMOVED"};
	static const unsigned int leaving[] = {SIZE, LEFT, WRITTEN};
	struct table_columns columns = {.titles = titles,
					.n = N_CELLS,
					.leaving = leaving,
					.n_leaving = sizeof(leaving) / sizeof(*leaving)};
	struct table_line line;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < t->r->n_spaces && i < t->top; i++) {
			fill(&t->r->spaces[i], &line);
			if (pass)
				text_path_line(t, &columns, &line);
			else
				table_measure(&columns, &line);
		}
		if (!pass) {
			fputc('\n', t->table.out);
			table_settle(&t->table, &columns, "FILE SYSTEMS");
		}
	}
	text_more(t, t->r->n_spaces, "more file system(s)");
}

void text_spaces(const struct text_report *t)
{
	char sentence[SPACES_TEXT_MAX];

	if (!t->r->n_spaces)
		return;
	put_table(t);
	for (size_t i = 0; i < t->r->n_spaces && i < SPACES_SENTENCES; i++)
		if (spaces_sentence(sentence, &t->r->spaces[i]))
			text_wrapped(t, "  ", sentence);
}
