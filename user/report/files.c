/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/files.h"

#include "base/text.h"
#include "base/units.h"
#include "format/fields.h"

/* What is read again is worth a sentence from here on. */
enum { AGAIN_PERCENT = 110, AGAIN_BYTES = 1 << 20, NAME_COLUMNS = 52 };

bool files_were_asked_for(const struct recording *r)
{
	static const char key[] = "files";

	return field_has(&record_recording, r, field_find(&record_recording, key, sizeof(key) - 1));
}

static bool was_read_again(const struct recording_file *file)
{
	return file->reread * 100 >= AGAIN_PERCENT && file->read >= file->distinct + AGAIN_BYTES;
}

char *files_sentence(char *text, const struct recording_file *file)
{
	char name[NAME_COLUMNS * TEXT_TERMINAL_GROWTH + 1];
	char read[UNITS_TEXT_MAX], distinct[UNITS_TEXT_MAX];

	if (!was_read_again(file))
		return NULL;
	text_cut_middle(name, file->path, NAME_COLUMNS);
	snprintf(text, FILES_TEXT_MAX,
		 "%s: %s from storage for %s of it, %.1f times: it did not stay in the page cache",
		 name, units_bytes_for_people(read, file->read),
		 units_bytes_for_people(distinct, file->distinct), file->reread);
	return text;
}
