/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/view/view_files.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

enum { REST_MAX = 256 /* bytes of what is said behind a path */ };

/* more: files that are not shown. */
static void say_rest(char rest[REST_MAX], const struct job_file *file, uint64_t more)
{
	char read[UNITS_TEXT_MAX], written[UNITS_TEXT_MAX];
	int len;

	len = snprintf(rest, REST_MAX, "%s   read %s, written %s",
		       file->is_deleted ? " (deleted)" : "",
		       units_bytes_for_people(read, file->read),
		       units_bytes_for_people(written, file->written));
	if (more)
		snprintf(rest + len, REST_MAX - (size_t)len, "   and %s",
			 units_counted(read, sizeof(read), more, "more file(s)"));
}

static void put_file(struct terminal *t, unsigned int line, unsigned int column,
		     const struct job_file *file, uint64_t more)
{
	const unsigned int width = terminal_columns(t);
	unsigned int room = width > column ? width - column : 0;
	char rest[REST_MAX];

	say_rest(rest, file, more);
	/* The path gives way to the figures, to half of the line at least. */
	room -= text_columns(rest) < room / 2 ? text_columns(rest) : room / 2;
	room = terminal_name(t, line, column, room, TERMINAL_FAINT, file->path);
	terminal_text(t, line, column + room, REST_MAX, TERMINAL_FAINT, rest);
}

unsigned int view_files_lines(const struct job_files *files, unsigned int most)
{
	const size_t n = files ? files->n : 0;

	return n < most ? (unsigned int)n : most;
}

unsigned int view_put_files(struct terminal *t, unsigned int line, unsigned int column,
			    const struct job_files *files, unsigned int most)
{
	const unsigned int lines = view_files_lines(files, most);

	for (unsigned int i = 0; i < lines; i++)
		put_file(t, line + i, column, &files->list[i],
			 i + 1 == lines ? files->n - lines + files->others : 0);
	return lines;
}
