/* SPDX-License-Identifier: GPL-2.0-only */
/* The page's table of file systems: how much room they had, and what temporary files took of it. */
#include "report/html_parts.h"
#include "report/spaces.h"

static void put_space(struct json_writer *j, const struct recording_space *space)
{
	json_array(j);
	html_shown(j, space->path);
	json_u64(j, space->size);
	json_u64(j, space->first);
	if (space_has_last(space))
		json_u64(j, space->last);
	else
		json_plain(j, "null");
	json_u64(j, space->least);
	html_secs(j, space->least_ns);
	html_shown(j, space->phase);
	json_u64(j, space->written);
	json_u64(j, space->removed);
	json_array_end(j);
}

void html_spaces(struct html_page *page)
{
	static const char *const keys[] = {"path", "size",  "first",   "last",	  "least",
					   "secs", "phase", "written", "removed", NULL};
	const struct recording *r = page->r;
	struct json_writer *j = &page->json;
	char sentence[SPACES_TEXT_MAX];

	if (!r->n_spaces)
		return;
	html_rows(j, "file_systems", keys);
	for (size_t i = 0; i < r->n_spaces; i++)
		put_space(j, &r->spaces[i]);
	html_rows_end(j);
	html_member_array(j, "removed");
	for (size_t i = 0; i < r->n_spaces && i < SPACES_SENTENCES; i++)
		if (spaces_sentence(sentence, &r->spaces[i]))
			html_shown(j, sentence);
	json_array_end(j);
}
