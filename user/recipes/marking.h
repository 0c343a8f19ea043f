/* SPDX-License-Identifier: GPL-2.0-only */
/* marking.h - makes checkpoints of a process from what items of its recipes mean. */
#ifndef QPROF_MARKING_H
#define QPROF_MARKING_H

#include "capture/marker.h"
#include "recipes/begun.h"
#include "recipes/teller.h"

/* A record that becomes checkpoints. */
struct marking {
	const struct wire_checkpoint *snapshot; /* what all of them have: time, process, figures */
	marker_feed_fn feed;
	void *context;
	struct begun *begun; /* notes phases that begin and end here; NULL: nobody does */
	bool died;	     /* a signal has killed the process: what ends here is cut short */
	bool of_thread;	     /* the thread that was heard made them, not the process as a whole */
	bool any;	     /* one was fed, with the snapshot */
};

/* A recipe_mark_fn; context is a struct marking. */
int marking_mark(void *context, const struct recipe_mark *mark);
/* Ends the phases that have begun, the youngest first. Returns 0, or -1: the capture ends. */
int marking_end_begun(struct marking *m, struct begun *begun);
/* Feeds the record itself, a mark, after what was made of it. */
int marking_last(struct marking *m);

#endif
