/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/spaces.h"

#include "base/text.h"
#include "base/units.h"
#include "format/fields.h"
#include "report/files.h"

enum { NAME_COLUMNS = 52, NAME_SIZE = NAME_COLUMNS * TEXT_TERMINAL_GROWTH + 1 };

bool space_has_last(const struct recording_space *space)
{
	return field_has_key(&record_space, space, "last_left_mb");
}

static void cut(char out[NAME_SIZE], const char *path)
{
	char end[4096];

	files_short_path(end, sizeof(end), path, NAME_COLUMNS);
	text_cut_middle(out, end, NAME_COLUMNS);
}

char *spaces_sentence(char *text, const struct recording_space *space)
{
	char mount[NAME_SIZE], file[NAME_SIZE], all[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];

	if (!space->removed_file)
		return NULL;
	cut(mount, space->path);
	cut(file, space->removed_file);
	snprintf(text, SPACES_TEXT_MAX,
		 "%s: %s were written to files that are removed by now, most to %s: %s", mount,
		 units_bytes_for_people(all, space->removed), file,
		 units_bytes_for_people(most, space->removed_most));
	return text;
}
