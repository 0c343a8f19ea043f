/* SPDX-License-Identifier: GPL-2.0-only */
/* outputs.h - the results of a bench, for people and for programs. */
#ifndef QPROF_BENCH_OUTPUTS_H
#define QPROF_BENCH_OUTPUTS_H

#include <stdio.h>

#include "bench/results.h"

enum { BENCH_NO_PIVOT = PARAMETERS_MAX };

struct bench_view {
	size_t pivot; /* index of the parameter that has columns; or BENCH_NO_PIVOT: a row for each
			 combination */
	unsigned int width; /* of text */
	bool colour;
};

/*
 * A matrix of a figure: its columns are the values of the pivot, its rows the combinations of all
 * other parameters.
 */
struct bench_matrix {
	size_t n_rows, n_columns;
	size_t *combinations; /* [row * n_columns + column] */
	char **labels;	      /* of rows */
};
/* Returns 0 or -ENOMEM. */
int matrix_make(struct bench_matrix *matrix, const struct bench *b, size_t pivot);
void matrix_free(struct bench_matrix *matrix);

/* Each writes the whole; the caller finds failed writes at the file's end. Return 0 or -ENOMEM. */
int bench_text(const struct bench_results *results, const struct bench_view *view, FILE *out);
int bench_markdown(const struct bench_results *results, const struct bench_view *view, FILE *out);
int bench_csv(const struct bench_results *results, const struct bench_view *view, FILE *out);
int bench_json(const struct bench_results *results, const struct bench_view *view, FILE *out);
int bench_html(const struct bench_results *results, const struct bench_view *view, FILE *out);

enum { BENCH_CELL_MAX = 64 };
/* "1.90G", and with the spread "1.90G +-2%": half of what lies between the lowest and the highest,
 * unless that is nothing. "failed" if all runs have, "-" if none says it. Returns cell
 * (BENCH_CELL_MAX bytes). */
char *bench_cell(char *cell, const struct bench_row *row, enum bench_figure figure,
		 bool with_spread);

#endif
