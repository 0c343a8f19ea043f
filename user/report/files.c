/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/files.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "format/fields.h"

/* What is read again is worth a sentence from here on. */
enum { AGAIN_PERCENT = 110, AGAIN_BYTES = 1 << 20, NAME_COLUMNS = 52, LONGEST_END = 2048 };
/* So are copies; those of libraries are smaller. */
enum { COPIED_BYTES = 16 << 20, PHASE_COLUMNS = 40 };

bool files_were_asked_for(const struct recording *r)
{
	return field_has_key(&record_recording, r, "files");
}

bool files_tell_calls(const struct recording_file *file)
{
	return field_has_key(&record_file, file, "call_read_mb");
}

/* Returns where the part of the path begins that has room. Only the end of a long one is looked at.
 */
static const char *part_with_room(const char *path, unsigned int columns)
{
	const size_t len = strlen(path);
	const char *from = len > LONGEST_END ? strchr(path + len - LONGEST_END, '/') : path;
	const char *next;

	if (!from)
		return path;
	while (text_columns(from) + (from != path) > columns && (next = strchr(from + 1, '/')))
		from = next;
	return from;
}

char *files_short_path(char *out, size_t size, const char *path, unsigned int columns)
{
	const char *from = part_with_room(path, columns);

	snprintf(out, size, "%s%s", from == path ? "" : "\xe2\x80\xa6", from);
	return out;
}

static bool was_read_again(const struct recording_file *file)
{
	return file->reread * 100 >= AGAIN_PERCENT && file->read >= file->distinct + AGAIN_BYTES;
}

char *files_sentence(char *text, const struct recording_file *file)
{
	char name[NAME_COLUMNS * TEXT_TERMINAL_GROWTH + 1];
	char path[2 * LONGEST_END], read[UNITS_TEXT_MAX], distinct[UNITS_TEXT_MAX];

	if (!was_read_again(file))
		return NULL;
	files_short_path(path, sizeof(path), file->path, NAME_COLUMNS);
	text_cut_middle(name, path, NAME_COLUMNS);
	snprintf(text, FILES_TEXT_MAX,
		 "%s: %s from storage for %s of it, %.1f times: it did not stay in the page cache",
		 name, units_bytes_for_people(read, file->read),
		 units_bytes_for_people(distinct, file->distinct), file->reread);
	return text;
}

/* Returns the phase at whose end there was the most. */
static const struct recording_file_use *most_copied(const struct recording_file *file)
{
	const struct recording_file_use *most = NULL;

	for (size_t i = 0; i < file->n_uses; i++)
		if (file->uses[i].copied && (!most || file->uses[i].copied > most->copied))
			most = &file->uses[i];
	return most;
}

char *files_copied_sentence(char *text, const struct recording_file *file)
{
	const struct recording_file_use *use = most_copied(file);
	char name[NAME_COLUMNS * TEXT_TERMINAL_GROWTH + 1];
	char phase[PHASE_COLUMNS * TEXT_TERMINAL_GROWTH + 1];
	char path[2 * LONGEST_END], copied[UNITS_TEXT_MAX];

	if (!use || use->copied < COPIED_BYTES)
		return NULL;
	files_short_path(path, sizeof(path), file->path, NAME_COLUMNS);
	text_cut_middle(name, path, NAME_COLUMNS);
	text_cut_middle(phase, use->name, PHASE_COLUMNS);
	snprintf(text, FILES_TEXT_MAX,
		 "%s: %s of it were copies at the end of %s: writing to a private mapping copies "
		 "the page, and what is read of the file is in memory twice",
		 name, units_bytes_for_people(copied, use->copied), phase);
	return text;
}
