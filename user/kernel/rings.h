/* SPDX-License-Identifier: GPL-2.0-only */
/* rings.h - the two ring buffers: records come out checked for size and kind. */
#ifndef QPROF_RINGS_H
#define QPROF_RINGS_H

#include <stdint.h>

#include "engine.h"

struct rings;

/* Called for each record; not 0 stops the reading and comes back from rings_read. */
typedef int (*rings_record_fn)(void *context, const struct wire_header *record);

/* NULL and errno. To be freed before the engine. */
struct rings *rings_new(const struct engine *e, rings_record_fn record, void *context);
void rings_free(struct rings *r);

/* To wait on: readable when records wait. */
int rings_fd(const struct rings *r);

/*
 * Reads what is there, at most some ten thousand records a call, so that the caller gets round to
 * its other duties. 1: there is more. 0: nothing is left. Negative: what the record function said.
 */
int rings_read(struct rings *r);

/* Records that were no record of ours, and were skipped. */
uint64_t rings_bad_records(const struct rings *r);

#endif
