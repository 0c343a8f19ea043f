/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Longer lines are hard to read. */
enum { MAX_OPEN_WIDTH = 200 };

unsigned int table_width(unsigned int width, unsigned int max)
{
	if (width < MIN_WIDTH)
		return MIN_WIDTH;
	return width < max ? width : max;
}

int table_open(struct table *table, unsigned int width, bool colour)
{
	*table = (struct table){
		.width = table_width(width, MAX_OPEN_WIDTH),
		.min_name = MIN_NAME,
		.max_name = 48,
		.indent_titles = INDENT,
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

unsigned int table_name(const struct table *table, const char *text, unsigned int columns,
			bool fill)
{
	char safe[MAX_WIDTH * TEXT_TERMINAL_GROWTH + 1];
	const unsigned int used =
		text_cut_middle(safe, text, columns < MAX_WIDTH ? columns : MAX_WIDTH);

	fprintf(table->out, "%s%*s", safe, fill ? (int)(columns - used) : 0, "");
	return used;
}

/* before: columns that are taken already by what stands before the name. */
static void put_line(const struct table *table, const struct table_line *line, unsigned int n_cells,
		     unsigned int before)
{
	const unsigned int room = (table->width - INDENT - table->min_name) / CELL_WIDTH;
	const unsigned int shown = room < n_cells ? room : n_cells;
	const unsigned int left = table->width - INDENT - shown * CELL_WIDTH;
	const unsigned int name = left < table->max_name ? left : table->max_name;

	fprintf(table->out, "%*s", (int)before, "");
	table_name(table, line->name, INDENT + name - before, true);
	for (unsigned int i = 0; i < shown; i++)
		fprintf(table->out, "%*s", CELL_WIDTH, line->cells[i]);
	fputc('\n', table->out);
}

static unsigned int indent_of(const struct table_line *line)
{
	return line->indent < MAX_INDENT ? line->indent : MAX_INDENT;
}

void table_line(const struct table *table, const struct table_line *line, unsigned int n_cells)
{
	put_line(table, line, n_cells, INDENT + indent_of(line));
}

void table_titles(const struct table *table, const char *name, const char *const *cells,
		  unsigned int n_cells)
{
	struct table_line line = {0};

	snprintf(line.name, sizeof(line.name), "%s", name);
	for (unsigned int i = 0; i < n_cells; i++)
		snprintf(line.cells[i], sizeof(line.cells[i]), "%s", cells[i]);
	table_tone(table, BOLD);
	put_line(table, &line, n_cells, table->indent_titles);
	table_tone(table, PLAIN);
}

/* ---- Columns as wide as what they hold ---- */

enum { GAP = 2 };

static void widen(unsigned int *width, unsigned int columns)
{
	if (*width < columns)
		*width = columns;
}

void table_measure(struct table_columns *columns, const struct table_line *line)
{
	widen(&columns->name, indent_of(line) + text_columns(line->name));
	for (unsigned int i = 0; i < columns->n; i++)
		widen(&columns->widths[i], GAP + (unsigned int)strlen(line->cells[i]));
}

static void put_settled(const struct table *table, const struct table_columns *columns,
			const struct table_line *line, unsigned int before)
{
	fprintf(table->out, "%*s", (int)before, "");
	table_name(table, line->name, INDENT + columns->name - before, true);
	for (unsigned int i = 0; i < columns->n; i++) {
		if (columns->widths[i])
			fprintf(table->out, "%*s", (int)columns->widths[i], line->cells[i]);
	}
	fputc('\n', table->out);
}

void table_settle(const struct table *table, struct table_columns *columns, const char *name)
{
	struct table_line titles = {0};
	unsigned int taken = INDENT, least;

	snprintf(titles.name, sizeof(titles.name), "%s", name);
	for (unsigned int i = 0; i < columns->n; i++)
		snprintf(titles.cells[i], sizeof(titles.cells[i]), "%s", columns->titles[i]);
	table_measure(columns, &titles);
	for (unsigned int i = 0; i < columns->n; i++)
		taken += columns->widths[i];
	if (columns->name > table->max_name)
		columns->name = table->max_name;
	least = columns->name < table->min_name ? columns->name : table->min_name;
	for (unsigned int i = 0; i < columns->n_leaving && taken + least > table->width; i++) {
		taken -= columns->widths[columns->leaving[i]];
		columns->widths[columns->leaving[i]] = 0;
	}
	if (taken + columns->name > table->width)
		columns->name = table->width - taken;
	table_tone(table, BOLD);
	put_settled(table, columns, &titles, table->indent_titles);
	table_tone(table, PLAIN);
}

void table_settled(const struct table *table, const struct table_columns *columns,
		   const struct table_line *line)
{
	put_settled(table, columns, line, INDENT + indent_of(line));
}

void table_more(const struct table *table, size_t n, size_t shown, const char *what,
		const char *where)
{
	char text[UNITS_TEXT_MAX];

	if (n > shown)
		fprintf(table->out, "%*s... and %s in the %s\n", INDENT, "",
			units_counted(text, sizeof(text), n - shown, what), where);
}

void table_wrapped(const struct table *table, const char *lead, const char *text)
{
	char safe[MAX_PARAGRAPH * TEXT_TERMINAL_GROWTH + 1];
	const int indent = (int)strlen(lead);
	const int room = (int)table->width - indent;
	const char *at = safe;

	text_for_terminal(safe, sizeof(safe), text, MAX_PARAGRAPH);
	while (*at) {
		int len = (int)strlen(at), next;

		if (len > room) {
			for (len = room; len > 0 && at[len] != ' '; len--)
				;
			len = len ? len : room;
		}
		/* Never cut a character: its further bytes begin with the bits 10. */
		while (len > 1 && ((unsigned char)at[len] & 0xc0) == 0x80)
			len--;
		fprintf(table->out, "%*s%.*s\n", indent, at == safe ? lead : "", len, at);
		for (next = len; at[next] == ' '; next++)
			;
		at += next;
	}
}

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

int table_write(struct table *table, int fd)
{
	int err = fclose(table->out) ? -ENOMEM : file_write(fd, table->text, table->len);

	free(table->text);
	return err;
}
