/* SPDX-License-Identifier: GPL-2.0-only */
/* results.h - what the finished runs of a bench came to: a row for each combination. */
#ifndef QPROF_BENCH_RESULTS_H
#define QPROF_BENCH_RESULTS_H

#include "bench/bench.h"
#include "format/quantities.h"

enum bench_figure {
	BENCH_PEAK,  /* bytes: highest RSS of the tree */
	BENCH_NEED,  /* bytes: most of what the kernel cannot take back */
	BENCH_GPU,   /* bytes: highest memory of GPUs */
	BENCH_READ,  /* bytes, through calls */
	BENCH_WRITE, /* bytes, through calls */
	BENCH_CPU,   /* ns */
	BENCH_TIME,  /* ns */
	BENCH_FIGURES,
};

struct bench_figure_info {
	const char *key;   /* "peak_memory" */
	const char *title; /* "PEAK" */
	const char *words; /* "peak memory" */
	enum quantity_unit unit;
};
extern const struct bench_figure_info bench_figures[BENCH_FIGURES];

/* The values of the runs of one combination that count, in the order of the repeats. */
struct bench_values {
	size_t n; /* 0: none says it */
	uint64_t items[BENCH_MAX_REPEATS];
	uint64_t median, lowest, highest;
	double mean, deviation; /* of a sample: 0 for one */
};

struct bench_failure {
	unsigned int repeat; /* from 0 */
	char *how; /* "Killed by the OOM killer ...": may have names that programs chose */
};

struct bench_row {
	char *label;
	size_t combination;
	unsigned int finished; /* runs, failed ones included */
	struct bench_failure *failures;
	size_t n_failures;
	struct bench_values figures[BENCH_FIGURES];
};

struct bench_results {
	const struct bench *b;
	const char *phase; /* the figures are of these phases; NULL: of the whole runs */
	struct bench_row *rows;
	size_t n_rows;
	bool has[BENCH_FIGURES]; /* a row says it */
};

struct bench_choice {
	const char *phase; /* pattern (fnmatch) of phases; NULL: the whole run */
	bool takes_failed; /* runs that failed count as others */
};

/*
 * Reads the profiles of a bench, which must outlive the results. Of phases, peaks are the highest,
 * and what adds up is added up; a phase in another of them counts with that one. Returns 0, or -1
 * and *err.
 */
int results_read(struct bench_results *results, const struct bench *b, const char *folder,
		 const struct bench_choice *choice, struct error *err);
void results_free(struct bench_results *results);

/* Returns how many runs failed. */
size_t results_failed(const struct bench_results *results);
/* Adds up what is in items. */
void values_settle(struct bench_values *values);

/*
 * Returns which rows have the lowest and the highest median of a figure, as indices; both are
 * n_rows unless these two differ by more than a hundredth, and each run of one from each of the
 * other.
 */
struct bench_extremes {
	size_t lowest, highest;
};
struct bench_extremes results_extremes(const struct bench_results *results,
				       enum bench_figure figure);

#endif
