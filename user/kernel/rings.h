/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rings.h - the ring buffers: their records, checked for size and kind.
 *
 * To read a record from a ring is cheap, to write a row of the profile is not. So records go into a
 * queue first. A burst that is faster than the writing then fills memory here, and not the ring,
 * where later records would find no room.
 */
#ifndef QPROF_RINGS_H
#define QPROF_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/engine.h"

struct rings;

struct rings_handler {
	/* Gets each record as it leaves its ring, ahead of queued ones: for urgent work. */
	void (*arrived)(void *context, const struct wire_header *record);
	/* Gets each record, in order. If it returns other than 0, rings_read() returns that. */
	int (*record)(void *context, const struct wire_header *record);
	void *context;
};

/* Returns NULL and sets errno if it fails. Free it before the engine. */
struct rings *rings_new(const struct engine *e, const struct rings_handler *handler);
void rings_free(struct rings *r);

/* Returns a descriptor that is readable while a ring has records. */
int rings_fd(const struct rings *r);
/* Returns a descriptor that is readable until the next rings_read() once records are not to wait:
 * a program waits for what they ask for, or will not be there for long. */
int rings_urgent_fd(const struct rings *r);

/*
 * Empties the rings into the queue, unless that takes more than 100 ms, and hands out at most 128
 * records of the queue, so that the caller can do its other work in between. Returns 1 if there are
 * more, such as one that is still being written; 0 if not; what `record` returned if that is not 0;
 * or -ENOMEM.
 */
int rings_read(struct rings *r);

/* A place in the rings: behind all that was written by then. */
struct rings_mark {
	uint64_t control, timeline; /* as ring_written() has it */
	uint64_t queued;	    /* records of the queue that are before it; 0: not known yet */
};

struct rings_mark rings_mark(const struct rings *r);
/* Returns true if all that is before the mark was handed out. That of the timeline is once events
 * leave it a turn. */
bool rings_are_past(const struct rings *r, struct rings_mark *mark);

/* Returns true if events were read since the last call. All records are, but points of curves, for
 * which nobody is woken. */
bool rings_had_events(struct rings *r);

/* Returns true if the last read handed out nothing, for the next record is still being written. */
bool rings_wait(const struct rings *r);
/* Returns true if that is so for seconds, and rings_read() does not expect the record any more.
 * Nothing that came after it was handed out. */
bool rings_are_stuck(const struct rings *r);

/* Returns how many records were skipped, since they were none of ours. */
uint64_t rings_bad_records(const struct rings *r);

#endif
