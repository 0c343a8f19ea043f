/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_look.h - offers the names that a process uses, from its command line and /proc, to the
 * rules.
 *
 * It reads names only, and opens no file that a process has mapped or open. Names are as the
 * process sees them, in its own mount namespace. Each function resets the match first.
 */
#ifndef QPROF_RULES_LOOK_H
#define QPROF_RULES_LOOK_H

#include "model/profile.h"
#include "recipes/recipe.h"
#include "recipes/rules.h"

enum {
	LOOK_MAX_MAPPINGS = 8192, /* of files, of a process; later ones are not looked at */
	LOOK_MAX_OPEN = 2048,	  /* descriptors of a process */
	LOOK_MAX_MS = 20,	  /* for a process: it may keep changing its mappings */
};

/* Looks at nothing but a WIRE_EXEC. Returns the rule that is met, or NULL. */
const struct rule *look_at_exec(struct rules_match *m, const struct wire_process *exec);

/* What one look is offered to: n matches of different rules. */
struct look_matches {
	struct rules_match *matches[RECIPE_SLOTS];
	size_t n;
};

/*
 * Looks at what the process runs and its libraries, and with files at all it has mapped and open.
 * Sets *cut if there is more than the limits allow. Returns false if the process is gone: what the
 * matches say by now may be of another.
 */
bool look_at_process(const struct look_matches *l, const struct profile_process *process,
		     bool files, bool *cut);

#endif
