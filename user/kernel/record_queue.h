/* SPDX-License-Identifier: GPL-2.0-only */
/* record_queue.h - records in memory, in the order in which they came, until their turn. */
#ifndef QPROF_RECORD_QUEUE_H
#define QPROF_RECORD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

struct block;

struct record_queue {
	struct block *first, *last;
	size_t blocks;
	uint64_t added, taken; /* records, ever */
};

void record_queue_begin(struct record_queue *q);
void record_queue_end(struct record_queue *q);

/* Adds a copy of a record that was checked. Returns false if there is no memory. */
bool record_queue_add(struct record_queue *q, const struct wire_header *record);
/* Returns true at 256 MiB: what comes is to stay where it is. */
bool record_queue_is_full(const struct record_queue *q);
/* Takes the oldest record out, which is valid until the next call; NULL if there is none. */
const struct wire_header *record_queue_next(struct record_queue *q);

#endif
