/* SPDX-License-Identifier: GPL-2.0-only */
/* diff.h - judges a comparison by limits and budgets, and writes it as text or JSON. */
#ifndef QPROF_DIFF_H
#define QPROF_DIFF_H

#include "format/ending.h"
#include "report/compare.h"

/* The most that a metric of the new side may be, whatever the old side has. */
struct diff_budget {
	const char *phase; /* pattern (fnmatch) of names; NULL: the whole run */
	enum compare_metric metric;
	uint64_t amount;
	const char *text; /* as the user gave it */
};

/* A limit or a budget that does not hold, or a budget that no phase matches. */
struct diff_breach {
	const char *limit; /* as the user gave it */
	const char *name;  /* of the phase; NULL: the whole run */
	unsigned int occurrence;
	enum compare_metric metric;
	bool is_missing; /* no phase matches the budget: there are no values */
	uint64_t new, most;
};

struct diff {
	const struct comparison *c;
	const char *old, *new;	       /* what the user called the sides */
	bool old_partial, new_partial; /* a profile of that side was cut off */
	/* Of the first run of each side that did not end well, by enum compare_side. */
	struct ending endings[2];
	const struct compare_limit *limits;
	size_t n_limits;
	const struct diff_budget *budgets;
	size_t n_budgets;
	struct diff_breach *breaches; /* by diff_judge; the caller frees them */
	size_t n_breaches;
	unsigned int width;
	bool all, colour;  /* all: show what did not change, too */
	bool allow_failed; /* judge runs that did not end well as others */
};

/* Fills in the breaches. Returns 0 or -ENOMEM. */
int diff_judge(struct diff *d);
/* Returns true if a limit or budget does not hold, or a run did not end well so that it may not. */
bool diff_is_broken(const struct diff *d);

void diff_text(const struct diff *d, FILE *out);
void diff_json(const struct diff *d, FILE *out);

#endif
