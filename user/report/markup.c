/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/markup.h"

#include "base/text.h"
#include "base/units.h"

void markup_text(FILE *out, const char *text, unsigned int columns)
{
	char safe[MARKUP_MAX_COLUMNS * TEXT_TERMINAL_GROWTH + 1];

	text_for_terminal(safe, sizeof(safe), text,
			  columns < MARKUP_MAX_COLUMNS ? columns : MARKUP_MAX_COLUMNS);
	for (const char *at = safe; *at; at++) {
		if (*at == '&' || *at == '<' || *at == '>' || *at == '"' || *at == '\'')
			fprintf(out, "&#%d;", *at);
		else
			putc_unlocked(*at, out);
	}
}

void markup_peak_time(FILE *out, const struct recording *r, unsigned int columns)
{
	char when[UNITS_TEXT_MAX];
	const char *words;
	const struct recording_phase *phase = recording_where_peak(r, &words);
	uint64_t ns;

	if (!recording_peak_time(r, &ns)) {
		fputs("at a time that the profile does not say", out);
		return;
	}
	fprintf(out, "at %s%s", units_time_for_people(when, ns), words);
	if (phase)
		markup_text(out, phase->shown, columns);
}
