/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * refusal.h - which limit may have refused memory, or room for a file, to a process that ends.
 *
 * Nothing hooks what is refused: it is told by what is left at the end.
 */
#ifndef QPROF_REFUSAL_H
#define QPROF_REFUSAL_H

#include "model/profile.h"

/* What a profile calls a limit; NULL: none. */
const char *profile_limit_name(enum profile_limit limit);

/* Whether it ends as one does that was refused memory: such a program, where it does not check, is
 * aborted or uses a null pointer. */
bool refusal_may_be(const struct profile_death *death);
/* Fills in refused_by, and what belongs to it; it stays PROFILE_NO_LIMIT where nothing was refused.
 * Returns 0, or -ENOMEM. */
int refusal_find(struct profile_death *death, const struct wire_ending *wire,
		 const struct profile_config *config);

#endif
