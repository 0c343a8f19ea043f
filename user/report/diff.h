/* SPDX-License-Identifier: GPL-2.0-only */
/* diff.h - a comparison judged by limits, and told as text or as JSON. */
#ifndef QPROF_DIFF_H
#define QPROF_DIFF_H

#include "report/compare.h"

/* The most that a metric of the new side may be. */
struct diff_budget {
	const char *phase; /* pattern (fnmatch) of names; NULL: the whole run */
	enum compare_metric metric;
	uint64_t amount;
	const char *text; /* as the user gave it */
};

/* A limit that was passed, or cannot be held against anything. */
struct diff_breach {
	const char *limit; /* as the user gave it */
	const char *name;  /* of the phase; NULL: the whole run */
	unsigned int occurrence;
	enum compare_metric metric;
	bool is_missing; /* a budget for a phase that is not there: no values */
	uint64_t new, most;
};

struct diff {
	const struct comparison *c;
	const char *old, *new;	       /* what the user called the sides */
	bool old_partial, new_partial; /* a profile of that side was cut off */
	const struct compare_limit *limits;
	size_t n_limits;
	const struct diff_budget *budgets;
	size_t n_budgets;
	struct diff_breach *breaches; /* by diff_judge; to be freed with free() */
	size_t n_breaches;
	unsigned int width;
	bool all, colour; /* all: also what did not change */
};

/* Fills in the breaches. 0 or -ENOMEM. */
int diff_judge(struct diff *d);
/* Whether limits were given and not all of them hold: of a side that was cut off nobody knows. */
bool diff_is_broken(const struct diff *d);

void diff_text(const struct diff *d, FILE *out);
void diff_json(const struct diff *d, FILE *out);

#endif
