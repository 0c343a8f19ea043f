/* SPDX-License-Identifier: GPL-2.0-only */
/* In which repeats of a phase what was on. */
#include "base/amounts.h"
#include "base/units.h"
#include "report/text_report.h"

enum { LATE_TOLD = 100 }; /* this part of the time of a window, or more */

static void put_list(const struct text_report *t, uint64_t *late)
{
	const struct recording_windows *s = &t->r->windows;
	char words[512], from[UNITS_TEXT_MAX], to[UNITS_TEXT_MAX];

	for (size_t i = 0; i < s->n_list; i++) {
		const struct recording_window *w = &s->list[i];

		if (w->late_ns > (w->end_ns - smaller_of(w->start_ns, w->end_ns)) / LATE_TOLD)
			raise_to(late, w->late_ns);
		if (i >= t->top)
			continue;
		snprintf(words, sizeof(words), "%.300s, %s to %s", w->phase,
			 units_time_for_people(from, w->start_ns),
			 units_time_for_people(to, w->end_ns));
		text_wrapped(t, "    ", words);
	}
	text_more(t, s->n_list, "more phase(s)");
}

void text_windows(const struct text_report *t)
{
	const struct recording_windows *s = &t->r->windows;
	char words[512], lead[UNITS_TEXT_MAX + 16], text[UNITS_TEXT_MAX];
	uint64_t late = 0;

	if (!s->has)
		return;
	text_title(t, "WINDOWS");
	snprintf(words, sizeof(words), "'%.200s' (%.100s); on for %s: %.60s", s->of, s->schedule,
		 units_time_for_people(text, s->on_ns), s->what);
	snprintf(lead, sizeof(lead), "  %s of ",
		 units_counted(text, sizeof(text), s->n_list, "phase(s)"));
	text_wrapped(t, lead, words);
	put_list(t, &late);
	if (late) {
		snprintf(words, sizeof(words),
			 "all was on up to %s after the beginning of these phases: nothing is "
			 "known of that part",
			 units_time_for_people(text, late));
		text_wrapped(t, "  ! ", words);
	}
	if (!s->dropped)
		return;
	snprintf(words, sizeof(words), "%s beyond those kept are no windows",
		 units_counted(text, sizeof(text), s->dropped, "phase(s)"));
	text_wrapped(t, "  ! ", words);
}
