/* SPDX-License-Identifier: GPL-2.0-only */
/* Which files were read, from storage and by calls, written, mapped, and read again. */
#include <string.h>

#include "report/files.h"
#include "report/text_report.h"

enum { SIZE, READ, DISTINCT, TIMES, WRITTEN, CALLS, MAPPED };

static void fill(const struct recording_file *file, struct table_line *line)
{
	*line = (struct table_line){0};
	snprintf(line->name, sizeof(line->name), "%s%s", file->path,
		 file->is_deleted ? " (deleted)" : "");
	if (!file->is_rest)
		units_bytes_short(line->cells[SIZE], file->size);
	if (file->read)
		units_bytes_short(line->cells[READ], file->read);
	if (file->distinct)
		units_bytes_short(line->cells[DISTINCT], file->distinct);
	if (file->reread > 0)
		snprintf(line->cells[TIMES], UNITS_TEXT_MAX, "%.2f", file->reread);
	if (file->written)
		units_bytes_short(line->cells[WRITTEN], file->written);
	if (file->called)
		units_bytes_short(line->cells[CALLS], file->called);
	if (file->mapped)
		units_bytes_short(line->cells[MAPPED], file->mapped);
}

/* The last columns may be empty: a service does not look at calls, nor a run without --file-copies
 * at mappings. */
static unsigned int count_columns(const struct recording *r)
{
	unsigned int n = CALLS;

	for (size_t i = 0; i < r->n_files; i++) {
		if (r->files[i].called && n < CALLS + 1)
			n = CALLS + 1;
		if (r->files[i].mapped)
			n = MAPPED + 1;
	}
	return n;
}

void text_path_line(const struct text_report *t, const struct table_columns *columns,
		    struct table_line *line)
{
	char name[sizeof(line->name)] = "";

	files_short_path(name, sizeof(name), line->name, columns->name);
	memcpy(line->name, name, sizeof(name));
	table_settled(&t->table, columns, line);
}

/* What is of no file comes last, and is never left out: it may be most of it. */
static void put_table(const struct text_report *t)
{
	static const char *const titles[] = {"SIZE",	"READ",	 "DISTINCT", "TIMES",
					     "WRITTEN", "CALLS", "MAPPED"};
	static const unsigned int leaving[] = {DISTINCT, SIZE, TIMES};
	struct table_columns columns = {.titles = titles,
					.n = count_columns(t->r),
					.leaving = leaving,
					.n_leaving = sizeof(leaving) / sizeof(*leaving)};
	struct table_line line;
	size_t n_files;

	for (int pass = 0; pass < 2; pass++) {
		n_files = 0;
		for (size_t i = 0; i < t->r->n_files; i++) {
			if (!t->r->files[i].is_rest && n_files++ >= t->top)
				continue;
			fill(&t->r->files[i], &line);
			if (pass)
				text_path_line(t, &columns, &line);
			else
				table_measure(&columns, &line);
		}
		if (!pass) {
			fputc('\n', t->table.out);
			table_settle(&t->table, &columns, "FILES");
		}
	}
	text_more(t, n_files, "more file(s)");
}

static void put_sentences(const struct text_report *t,
			  char *(*sentence_of)(char *text, const struct recording_file *file))
{
	char sentence[FILES_TEXT_MAX];
	size_t said = 0;

	for (size_t i = 0; i < t->r->n_files && said < FILES_SENTENCES; i++) {
		if (!sentence_of(sentence, &t->r->files[i]))
			continue;
		text_wrapped(t, "  ", sentence);
		said++;
	}
}

void text_files(const struct text_report *t)
{
	if (!files_were_asked_for(t->r))
		return;
	if (!t->r->n_files) {
		text_title(t, "FILES: nothing was read or written");
		return;
	}
	put_table(t);
	put_sentences(t, files_sentence);
	put_sentences(t, files_copied_sentence);
}
