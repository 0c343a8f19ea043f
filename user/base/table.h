/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * table.h - lines of names and numbers for people, as wide as their terminal. Text that programs
 * chose is made safe for a terminal.
 */
#ifndef QPROF_TABLE_H
#define QPROF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/text.h"
#include "base/units.h"

enum {
	MIN_WIDTH = 60,
	MAX_WIDTH = 512,
	MAX_PARAGRAPH = 2048, /* columns of table_wrapped, all its lines together */
	MIN_NAME = 26,	      /* of table_open */
	INDENT = 2,
	MAX_INDENT = 8, /* of what is nested */
	CELL_WIDTH = 10,
	MAX_CELLS = 9,
};

struct table {
	FILE *out; /* of table_open: into memory, until table_write */
	unsigned int width;
	unsigned int min_name; /* columns of a name, at least: the last numbers give way to it */
	unsigned int max_name; /* and at most: numbers stay near their names */
	unsigned int indent_titles;
	bool colour; /* escapes are wanted */
	char *text;
	size_t len;
};

/* A name and its numbers. The width of the table decides how many of them are shown. */
struct table_line {
	char name[MAX_WIDTH * TEXT_TERMINAL_GROWTH + 1];
	unsigned int indent;
	char cells[MAX_CELLS][UNITS_TEXT_MAX];
};

enum table_tone { PLAIN, BOLD, WARNING };

/* Between MIN_WIDTH and max. */
unsigned int table_width(unsigned int width, unsigned int max);

/* A table in memory. Returns 0, and table_write must follow; or -ENOMEM. */
int table_open(struct table *table, unsigned int width, bool colour);
/* Writes the whole table and frees it. Returns 0 or -errno. */
int table_write(struct table *table, int fd);

void table_tone(const struct table *table, enum table_tone tone);
/* A program's text, at most columns wide, cut in its middle; then blanks up to there if fill.
 * Returns the columns of the text. */
unsigned int table_name(const struct table *table, const char *text, unsigned int columns,
			bool fill);
void table_line(const struct table *table, const struct table_line *line, unsigned int n_cells);
void table_titles(const struct table *table, const char *name, const char *const *cells,
		  unsigned int n_cells);

/*
 * Columns that are as wide as what they hold. Each line is given twice: to table_measure(), and,
 * after table_settle() has written the titles, to table_settled().
 */
struct table_columns {
	const char *const *titles;
	unsigned int n;
	const unsigned int *leaving; /* columns that give way to the name, the first one first */
	unsigned int n_leaving;
	unsigned int widths[MAX_CELLS]; /* 0: there is no room for it */
	unsigned int name;
};

void table_measure(struct table_columns *columns, const struct table_line *line);
void table_settle(const struct table *table, struct table_columns *columns, const char *name);
void table_settled(const struct table *table, const struct table_columns *columns,
		   const struct table_line *line);

/* "... and 7 more processes in the profile", if n are more than were shown. what: "more
 * process(es)", see units_counted(). */
void table_more(const struct table *table, size_t n, size_t shown, const char *what,
		const char *where);
/* A program's text on as many lines as it takes: lead before the first, blanks before the others.
 * What is beyond MAX_PARAGRAPH columns is cut. */
void table_wrapped(const struct table *table, const char *lead, const char *text);
/* Pieces on one line, or on several where it would get too long. */
void table_pieces(const struct table *table, const char *separator, const char *const *pieces,
		  size_t n);

#endif
