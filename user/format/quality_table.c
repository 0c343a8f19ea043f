/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/quality_table.h"

enum { MAX_WARNINGS = 10 };

static void put_warning(const struct table *table, const struct run_warning *warning)
{
	const unsigned int width = table->width - INDENT;

	fprintf(table->out, "%*s! ", INDENT, "");
	table_name(table, warning->what, width, false);
	fputs(": ", table->out);
	table_name(table, warning->why, width, false);
	fputc('\n', table->out);
}

void quality_table(const struct table *table, const struct quality_count *counts, size_t n,
		   const struct run_quality *quality, const char *where)
{
	char text[256];

	table_tone(table, WARNING);
	for (size_t i = 0; i < n; i++) {
		if (quality_is_worth_saying(counts[i].key, counts[i].count))
			fprintf(table->out, "%*s! %s\n", INDENT, "",
				units_counted(text, sizeof(text), counts[i].count,
					      counts[i].means));
	}
	for (size_t i = 0; i < quality->n_warnings && i < MAX_WARNINGS; i++)
		put_warning(table, &quality->warnings[i]);
	table_more(table, quality->n_warnings, MAX_WARNINGS, "more warning(s)", where);
	table_tone(table, PLAIN);
}
