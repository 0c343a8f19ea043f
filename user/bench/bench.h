/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bench.h - a bench: a command, its parameters and repeats, as its folder remembers them.
 *
 *	DIR/bench.yaml			what is run: written first
 *	DIR/003-method=mse.r2.yaml	a profile of a finished run: the third combination, run 2
 *	DIR/003-method=mse.r2.log	what the command printed in it
 *	DIR/.running-PID.yaml		a run that goes on, or was cut off
 *
 * A run is finished when its profile has its name. So a bench that was killed goes on where it was,
 * and no run counts twice.
 */
#ifndef QPROF_BENCH_H
#define QPROF_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/parameters.h"

enum { BENCH_MAX_REPEATS = 64 };

struct bench {
	struct parameters parameters;
	char **command; /* with {names} of parameters; malloc'ed, as each word; NULL at its end */
	size_t n_command;
	char *label; /* what combinations are called, with {names}; NULL: by their parameters */
	unsigned int repeats; /* of each combination */
	bool is_shuffled;
	uint64_t seed; /* of the order */
};

/* A run: which combination, and which repeat of it, from 0. */
struct bench_run {
	size_t combination;
	unsigned int repeat;
};

void bench_free(struct bench *b);

/* Return what people call a combination, and "003-method=mse.r2" of a run; malloc'ed, NULL when
 * out of memory. */
char *bench_label(const struct bench *b, size_t combination);
char *bench_run_name(const struct bench *b, struct bench_run run);
/* Returns the command of a combination, ended by NULL, as one block; NULL when out of memory. */
char **bench_command(const struct bench *b, size_t combination);
void bench_command_free(char **command);

/* Returns all runs in the order in which they are to be made, malloc'ed; NULL: out of memory.
 * More repeats than before leave the order of none as it was, but do not change what a run is. */
struct bench_run *bench_schedule(const struct bench *b, size_t *n);

#endif
