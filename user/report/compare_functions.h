/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compare_functions.h - which functions were the first to touch memory, or used CPU time, on both
 * sides, in the whole run. Functions match by name and file, without the file's directory.
 *
 * A function that a run's stacks do not have touched or used nothing in that run. Runs without such
 * stacks do not count, but for those whose stacks of GPUs are of nothing.
 */
#ifndef QPROF_COMPARE_FUNCTIONS_H
#define QPROF_COMPARE_FUNCTIONS_H

#include "format/touched.h"
#include "report/compare.h"

enum compare_part {
	COMPARE_SELF,  /* bytes or ns charged to the function: see touched_who() */
	COMPARE_TOTAL, /* of stacks that it is in */
	COMPARE_PARTS,
};

struct compared_function;

/* A growing list of them. Zeros are an empty one. */
struct compared_functions {
	struct compared_function **items; /* the first stands for all of them */
	size_t n, cap;
	struct compared_function *by_name;
	size_t n_runs[2]; /* of a side, with stacks */
};

/* Adds those of a profile, of memory or of CPU time. Returns 0 or -ENOMEM. */
int compared_functions_add(struct compared_functions *functions, enum compare_side side,
			   const struct recording *r, enum touched_what what);
void compared_functions_free(struct compared_functions *functions);

/* Returns its name; *file is "" for what is no function. */
const char *compared_function_name(const struct compared_function *f, const char **file);
struct compare_values compared_function_values(const struct compared_functions *functions,
					       const struct compared_function *f,
					       enum compare_side side, enum compare_part part);

#endif
