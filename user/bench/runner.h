/* SPDX-License-Identifier: GPL-2.0-only */
/* runner.h - makes the runs of a bench, one after the other. */
#ifndef QPROF_BENCH_RUNNER_H
#define QPROF_BENCH_RUNNER_H

#include "bench/bench.h"
#include "base/error.h"

struct runner {
	const struct bench *b;
	const char *folder;
	const char *prepare;	 /* a command for the shell before each run; NULL: none */
	const char *const *cold; /* files and folders that leave the page cache before it */
	size_t n_cold;
	const char *const *options; /* of each run: "--scope" */
	size_t n_options;
	unsigned int warmups; /* runs of each combination that do not count */
	bool as_root;	      /* the command and what prepares it, under sudo */
	bool shows_output;    /* of the command: else it is in a file beside the profile */
	bool is_quiet;
};

enum runner_end { RUNNER_DONE, RUNNER_STOPPED, RUNNER_FAILED };

/*
 * Makes the runs that are not finished. RUNNER_STOPPED: by a signal; the run that it met does not
 * count. RUNNER_FAILED: *err. A command that fails is a result like others.
 */
enum runner_end runner_run(const struct runner *r, struct error *err);

#endif
