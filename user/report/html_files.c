/* SPDX-License-Identifier: GPL-2.0-only */
/* The page's tables of files: what was read and written, of each and by phase. */
#include "report/files.h"
#include "report/html_parts.h"

/* Each phase with what was read and written during all phases of that name. */
static void put_uses(struct json_writer *j, const struct recording_file *file)
{
	json_array(j);
	for (size_t i = 0; i < file->n_uses; i++) {
		if (!file->uses[i].read && !file->uses[i].written && !file->uses[i].called)
			continue;
		json_array(j);
		html_shown(j, file->uses[i].name);
		json_u64(j, file->uses[i].read);
		json_u64(j, file->uses[i].written);
		json_u64(j, file->uses[i].called);
		json_array_end(j);
	}
	json_array_end(j);
}

static void put_file(struct json_writer *j, const struct recording_file *file)
{
	char text[UNITS_TEXT_MAX];

	json_array(j);
	html_shown(j, file->path);
	html_bool(j, file->is_rest);
	html_bool(j, file->is_deleted);
	if (file->is_rest)
		json_plain(j, "null");
	else
		json_u64(j, file->size);
	json_u64(j, file->read);
	json_u64(j, file->distinct);
	snprintf(text, sizeof(text), "%.2f", file->reread);
	json_plain(j, text);
	json_u64(j, file->written);
	json_u64(j, file->called);
	json_u64(j, file->mapped);
	json_u64(j, file->copied);
	put_uses(j, file);
	json_array_end(j);
}

static void put_sentences(struct html_page *page, const char *name,
			  char *(*sentence_of)(char *text, const struct recording_file *file))
{
	struct json_writer *j = &page->json;
	char sentence[FILES_TEXT_MAX];
	size_t said = 0;

	html_member_array(j, name);
	for (size_t i = 0; i < page->r->n_files && said < FILES_SENTENCES; i++) {
		if (!sentence_of(sentence, &page->r->files[i]))
			continue;
		html_shown(j, sentence);
		said++;
	}
	json_array_end(j);
}

void html_files(struct html_page *page)
{
	static const char *const keys[] = {"path",     "rest",	 "deleted", "size",   "read",
					   "distinct", "reread", "written", "called", "mapped",
					   "copied",   "uses",	 NULL};
	const struct recording *r = page->r;
	struct json_writer *j = &page->json;

	if (!files_were_asked_for(r))
		return;
	html_rows(j, "files", keys);
	for (size_t i = 0; i < r->n_files; i++)
		put_file(j, &r->files[i]);
	html_rows_end(j);
	put_sentences(page, "read_again", files_sentence);
	put_sentences(page, "copied_files", files_copied_sentence);
}
