/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * within.h - what threads of a run waited for while a window was open (windows.h): that alone
 * counts, up to each row. Whoever opens windows is late, so the kernel side counts before and
 * after them, too.
 *
 * Example: rows are at 1, 2, 3 and 4 s, a window is open between 2 and 3, and the kernel side has
 * counted 0, 1.5, 3 and 3.2 s of sleep by then: the rows have 0, 0, 1.5 and 1.5 s.
 */
#ifndef QPROF_MODEL_WITHIN_H
#define QPROF_MODEL_WITHIN_H

#include <stdbool.h>

#include "model/usage.h"

struct within {
	bool is_asked;			/* there are windows: else all counts */
	bool is_open;			/* since the last row */
	uint64_t last_ns, open_ns;	/* the last row; for how long one was open by then */
	struct profile_usage last, sum; /* USAGE_OF_WINDOWS() of these */
};

/* Takes what the tree has used by a checkpoint, and has *usage tell of windows alone. */
static inline void within_usage(struct within *w, struct profile_usage *usage, uint64_t ns)
{
	const struct profile_usage now = *usage;

	if (!w->is_asked)
		return;
	if (!w->is_open)
		w->last = now;
	w->open_ns += w->is_open ? since(w->last_ns, ns) : 0;
	raise_to(&w->last_ns, ns);
#define WITHIN_TELL(member)                                                                        \
	w->sum.member += since(w->last.member, now.member);                                        \
	raise_to(&w->last.member, now.member);                                                     \
	usage->member = w->sum.member;
	USAGE_OF_WINDOWS(WITHIN_TELL)
#undef WITHIN_TELL
}

/* Of others than the tree, and between checkpoints, nobody knows what was in windows. */
static inline void within_forget(const struct within *w, struct profile_usage *usage)
{
	if (!w->is_asked)
		return;
#define WITHIN_FORGET(member) usage->member = 0;
	USAGE_OF_WINDOWS(WITHIN_FORGET)
#undef WITHIN_FORGET
}

#endif
