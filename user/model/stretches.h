/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stretches.h - when phases of a name went on: of those that overlap, what was used then counts
 * once. Example: "Load" from 1 to 3 s in one thread, and from 2 to 4 s in another, is one stretch,
 * from 1 to 4 s.
 */
#ifndef QPROF_MODEL_STRETCHES_H
#define QPROF_MODEL_STRETCHES_H

#include "model/profile.h"

struct stretch {
	const char *name;
	uint64_t start_ns, end_ns;
};

/* Sets list[n], in order of names, then of beginning: each phase by itself. */
void stretches_of_each(struct stretch *list, const struct profile_phase *phases, size_t n);
/* Sets list[], with room for n, in order of names, then of time. Returns how many there are. */
size_t stretches_find(struct stretch *list, const struct profile_phase *phases, size_t n);

#endif
