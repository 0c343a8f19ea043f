/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int table_open(struct table *table, unsigned int width, bool colour)
{
	*table = (struct table){
		.width = width < MIN_WIDTH   ? MIN_WIDTH
			 : width > MAX_WIDTH ? MAX_WIDTH
					     : width,
		.colour = colour,
	};
	table->out = open_memstream(&table->text, &table->len);
	return table->out ? 0 : -ENOMEM;
}

void table_tone(const struct table *table, enum table_tone tone)
{
	static const char *const escapes[] = {"\x1b[0m", "\x1b[1m", "\x1b[33m"};

	if (table->colour)
		fputs(escapes[tone], table->out);
}

/* Text of a process, at most columns wide, then blanks up to there if fill. */
void table_name(const struct table *table, const char *text, unsigned int columns, bool fill)
{
	char safe[MAX_WIDTH * TEXT_TERMINAL_GROWTH + 1];
	unsigned int used = text_for_terminal(safe, sizeof(safe), text, columns);

	fprintf(table->out, "%s%*s", safe, fill ? (int)(columns - used) : 0, "");
}

static unsigned int shown_cells(const struct table *table, unsigned int n_cells)
{
	const unsigned int room = (table->width - INDENT - MIN_NAME) / CELL_WIDTH;

	return room < n_cells ? room : n_cells;
}

void table_line(const struct table *table, const struct table_line *line, unsigned int n_cells)
{
	const unsigned int shown = shown_cells(table, n_cells);
	const unsigned int indent = line->indent < MAX_INDENT ? line->indent : MAX_INDENT;
	/* Not wider than names are, mostly: numbers are to be near them. */
	unsigned int name = table->width - INDENT - shown * CELL_WIDTH;

	name = name > 48 ? 48 : name;
	fprintf(table->out, "%*s", INDENT + (int)indent, "");
	table_name(table, line->name, name - indent, true);
	for (unsigned int i = 0; i < shown; i++)
		fprintf(table->out, "%*s", CELL_WIDTH, line->cells[i]);
	fputc('\n', table->out);
}

void table_titles(const struct table *table, const char *name, const char *const *cells,
		  unsigned int n_cells)
{
	struct table_line line = {0};

	snprintf(line.name, sizeof(line.name), "%s", name);
	for (unsigned int i = 0; i < n_cells; i++)
		snprintf(line.cells[i], sizeof(line.cells[i]), "%s", cells[i]);
	table_tone(table, BOLD);
	table_line(table, &line, n_cells);
	table_tone(table, PLAIN);
}

void table_more(const struct table *table, size_t n, size_t shown, const char *what,
		const char *where)
{
	if (n > shown)
		fprintf(table->out, "%*s... and %zu more %s in the %s\n", INDENT, "", n - shown,
			what, where);
}

/* A line of pieces, broken between two where it would get too long. */
void table_pieces(const struct table *table, const char *separator, const char *const *pieces,
		  size_t n)
{
	const size_t gap = strlen(separator);
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(pieces[i]);

		if (i && at + gap + len > table->width)
			at = (size_t)fprintf(table->out, "\n%*s", INDENT, "") - 1;
		else if (i)
			at += (size_t)fprintf(table->out, "%s", separator);
		fputs(pieces[i], table->out);
		at += len;
	}
	fputc('\n', table->out);
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

int table_write(struct table *table, int fd)
{
	int err = fclose(table->out) ? -ENOMEM : write_all(fd, table->text, table->len);

	free(table->text);
	return err;
}
