/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_look.h - what a process is, for its rules: names from its command line and from /proc.
 *
 * Names only: nothing that a process has mapped or open is opened. They are as the process sees
 * them, in its own mount namespace. Each of the functions begins anew with the match.
 */
#ifndef QPROF_RULES_LOOK_H
#define QPROF_RULES_LOOK_H

#include "model/profile.h"
#include "audit/rules/rules.h"

enum {
	LOOK_MAX_MAPPINGS = 8192, /* of files, of a process: those behind them are not looked at */
	LOOK_MAX_OPEN = 2048,	  /* likewise descriptors */
	LOOK_MAX_MS = 20,	  /* a process that keeps changing its mappings makes us wait */
};

/* By what a WIRE_EXEC says alone. The rule that is met, or NULL. */
const struct rule *look_at_exec(struct rules_match *m, const struct wire_process *exec);

/*
 * By all that /proc has of it now, or, not files, by what it runs and its libraries alone. *cut:
 * there is more than is looked at. The rule that is met; NULL: none, or the process is gone.
 */
const struct rule *look_at_process(struct rules_match *m, const struct profile_process *process,
				   bool files, bool *cut);

#endif
