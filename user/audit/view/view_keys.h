/* SPDX-License-Identifier: GPL-2.0-only */
/* view_keys.h - the state of the live view of an audit, and how each key changes it. Pure. */
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
	/* Have a column: a process that was shown is in a container, has hugetlb memory, or has
	 * memory on GPUs. */
	bool containers, hugetlb, gpu;
	bool typing;			/* a filter */
	char filter[VIEW_FILTER_MAX];	/* UTF-8 */
	char previous[VIEW_FILTER_MAX]; /* the filter before typing */
	/* The list that scrolls, of processes unless only jobs are shown: its first line on the
	 * screen; and, set by view_draw(), the lines that fit, and all that there are. */
	size_t first, page, lines;
};

enum view_answer {
	VIEW_SAME,    /* draw nothing */
	VIEW_CHANGED, /* draw a frame */
	VIEW_AFRESH,  /* clear the screen and draw a frame */
	VIEW_QUIT,
};

/* key is a character's code point, or an enum terminal_key. */
enum view_answer view_key(struct view_state *state, int key);

#endif
