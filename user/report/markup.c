/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/markup.h"

#include "base/text.h"

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
