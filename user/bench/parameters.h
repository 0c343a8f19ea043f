/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * parameters.h - what varies from one run of a bench to the next: named values, and all their
 * combinations. Combination 0 has the first value of each; the last parameter varies fastest.
 */
#ifndef QPROF_BENCH_PARAMETERS_H
#define QPROF_BENCH_PARAMETERS_H

#include <stddef.h>

#include "base/error.h"

enum {
	PARAMETERS_MAX = 16,
	PARAMETER_MAX_VALUES = 1000,
	PARAMETERS_MAX_COMBINATIONS = 10000,
	PARAMETER_MAX_NAME = 64, /* bytes */
};

struct parameter {
	char *name;
	char **values;
	size_t n;
	char *from, *to; /* of a scan; else NULL */
};

struct parameters {
	struct parameter items[PARAMETERS_MAX];
	size_t n;
};

void parameters_free(struct parameters *p);

/* Each returns 0, or -1 and *err. Names are letters, digits, "_" and "-", each once. */

/* values: with commas between; "\," is a comma in a value. */
int parameters_add_list(struct parameters *p, const char *name, const char *values,
			struct error *err);
/* The decimal numbers from `from` to `to`, both included, by 1: see parameters_set_step(). */
int parameters_add_scan(struct parameters *p, const char *name, const char *from, const char *to,
			struct error *err);
/* Has the last parameter, a scan, go by this decimal number. */
int parameters_set_step(struct parameters *p, const char *step, struct error *err);
/* Adds a parameter without values, and a value to the last one. */
int parameters_add(struct parameters *p, const char *name, struct error *err);
int parameters_add_value(struct parameters *p, const char *value, size_t len, struct error *err);
/* Whether they have a value each, and no more than PARAMETERS_MAX_COMBINATIONS. */
int parameters_check(const struct parameters *p, struct error *err);

/* Returns at least 1. */
size_t parameters_combinations(const struct parameters *p);
const char *parameters_value(const struct parameters *p, size_t combination, size_t parameter);
/* Returns the index of a parameter, or p->n. */
size_t parameters_find(const struct parameters *p, const char *name, size_t len);

/*
 * Returns text with each {name} of a parameter replaced by its value, malloc'ed; NULL when out of
 * memory. Other braces stay.
 */
char *parameters_fill(const struct parameters *p, size_t combination, const char *text);
/* Returns "method=mse, bits=8", malloc'ed: "" without parameters. NULL when out of memory. */
char *parameters_label(const struct parameters *p, size_t combination);

#endif
