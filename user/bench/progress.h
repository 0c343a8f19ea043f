/* SPDX-License-Identifier: GPL-2.0-only */
/* progress.h - how far a bench is: a bar on a terminal, else a line for each run. */
#ifndef QPROF_BENCH_PROGRESS_H
#define QPROF_BENCH_PROGRESS_H

#include "bench/bench.h"

struct progress {
	size_t finished, n;    /* runs; those of an earlier time included */
	size_t made;	       /* this time */
	uint64_t begun_ns;     /* of the first run */
	uint64_t run_begun_ns; /* of the run that goes on */
	bool is_quiet, is_bar;
};

void progress_begin(struct progress *p, size_t finished, size_t n, bool is_quiet);
/* The run begins. */
void progress_run(struct progress *p, const struct bench *b, struct bench_run run, bool is_warmup);
/* It is finished. */
void progress_made(struct progress *p, const struct bench *b, struct bench_run run);
/* Clears the bar. */
void progress_clear(void);

#endif
