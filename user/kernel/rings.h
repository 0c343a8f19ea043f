/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rings.h - the two ring buffers: records come out checked for size and kind.
 *
 * Taking a record out of a ring is cheap, writing a row of the profile is not. So records go into
 * a queue first, and a burst that is faster than the writing fills memory here, for as long as it
 * lasts, and not the ring, where it would push out what comes after.
 */
#ifndef QPROF_RINGS_H
#define QPROF_RINGS_H

#include <stdint.h>

#include "kernel/engine.h"

struct rings;

struct rings_handler {
	/* Each record, when it leaves its ring, ahead of those that are queued: for what cannot
	 * wait. */
	void (*arrived)(void *context, const struct wire_header *record);
	/* Each record, in order. Not 0 stops the reading and comes back from rings_read. */
	int (*record)(void *context, const struct wire_header *record);
	void *context;
};

/* NULL and errno. To be freed before the engine. */
struct rings *rings_new(const struct engine *e, const struct rings_handler *handler);
void rings_free(struct rings *r);

/* To wait on: readable when records wait in a ring. */
int rings_fd(const struct rings *r);

/*
 * Empties the rings into the queue, and hands out a hundred or so of what is queued, so that the
 * caller gets round to its other duties. 1: there is more. 0: nothing is left. Negative: what the
 * record function said, or -ENOMEM.
 */
int rings_read(struct rings *r);

/* Records that were no record of ours, and were skipped. */
uint64_t rings_bad_records(const struct rings *r);

#endif
