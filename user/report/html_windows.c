/* SPDX-License-Identifier: GPL-2.0-only */
/* The page's words about when what was on, if not always. */
#include "report/html_parts.h"

void html_windows(struct html_page *page)
{
	static const char *const keys[] = {"phase", "pid", "start", "end", "late", NULL};
	const struct recording_windows *s = &page->r->windows;
	struct json_writer *j = &page->json;

	if (!s->has)
		return;
	html_member_object(j, "window");
	html_member_shown(j, "schedule", s->schedule);
	html_member_shown(j, "of", s->of);
	html_member_shown(j, "what", s->what);
	html_rows(j, "phases", keys);
	for (size_t i = 0; i < s->n_list; i++) {
		const struct recording_window *w = &s->list[i];

		json_array(j);
		html_shown(j, w->phase);
		json_u64(j, w->pid);
		json_u64(j, w->start_ns);
		json_u64(j, w->end_ns);
		json_u64(j, w->late_ns);
		json_array_end(j);
	}
	html_rows_end(j);
	json_object_end(j);
}
