/* SPDX-License-Identifier: GPL-2.0-only */
/* judge.h - report --fits, --fits-gpu and --budget: one profile judged, without another to compare
 * with. */
#ifndef QPROF_JUDGE_H
#define QPROF_JUDGE_H

#include "cli/budgets.h"

struct judge {
	uint64_t fits, fits_gpu; /* bytes; 0: not asked */
	struct budgets budgets;
	bool allow_failed;
	const char *phase; /* --fits: only these phases (fnmatch); NULL: all */
	bool json, colour;
	unsigned int width;
};

/* Whether there is anything to judge. */
bool judge_is_asked(const struct judge *judge);

/*
 * Judges r and writes the result. Returns the exit status: 0, all holds; 1, it does not; 3, nobody
 * can tell; or -1 when out of memory.
 */
int judge_write(const struct judge *judge, const struct recording *r, FILE *out);

#endif
