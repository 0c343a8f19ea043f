/* SPDX-License-Identifier: GPL-2.0-only */
/* view_keys.h - what the live view of an audit shows, and what each key changes of it. Pure. */
#ifndef QPROF_VIEW_KEYS_H
#define QPROF_VIEW_KEYS_H

#include "audit/view/terminal.h"
#include "audit/view/view_rows.h"

enum view_lists { VIEW_BOTH, VIEW_PROCESSES, VIEW_JOBS, VIEW_LISTS };

enum { VIEW_FILTER_MAX = 128 /* bytes, its NUL included */ };

struct view_state {
	enum view_sort sort;
	enum view_lists lists;
	bool tree, help;
	bool containers;		/* have a column: a process that was shown is in one */
	bool typing;			/* the filter */
	char filter[VIEW_FILTER_MAX];	/* UTF-8 */
	char previous[VIEW_FILTER_MAX]; /* while typing: that from before */
	/* Of the list that scrolls, the processes unless there are only jobs: the first line that
	 * is shown. Whoever draws says how many lines were shown, and how many there are. */
	size_t first, page, lines;
};

enum view_answer {
	VIEW_SAME,    /* nothing to be done */
	VIEW_CHANGED, /* to be drawn */
	VIEW_AFRESH,  /* likewise, after the screen was cleared */
	VIEW_QUIT,
};

/* A character's code point, or an enum terminal_key. */
enum view_answer view_key(struct view_state *state, int key);

#endif
