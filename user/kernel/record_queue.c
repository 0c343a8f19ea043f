/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/record_queue.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_SIZE = 256 << 10,
	MAX_BLOCKS = 1024, /* 256 MiB */
};

/* A block of the queue. Its records follow each other, each 8-byte aligned. */
struct block {
	struct block *next;
	size_t filled, taken;
	unsigned char bytes[] __attribute__((aligned(8)));
};

void record_queue_begin(struct record_queue *q)
{
	/* Blocks are mapped, so that the memory of a burst goes back to the system after it. On the
	 * heap something small would lie above them and keep it. */
	mallopt(M_MMAP_THRESHOLD, BLOCK_SIZE);
	*q = (struct record_queue){0};
}

static size_t aligned(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

/* Returns room for a record at the end of the queue, or NULL if there is no memory. */
static void *extend(struct record_queue *q, size_t size)
{
	struct block *block = q->last;

	if (!block || block->filled + aligned(size) > BLOCK_SIZE) {
		block = malloc(sizeof(*block) + BLOCK_SIZE);
		if (!block)
			return NULL;
		*block = (struct block){0};
		if (q->last)
			q->last->next = block;
		else
			q->first = block;
		q->last = block;
		q->blocks++;
	}
	block->filled += aligned(size);
	return block->bytes + block->filled - aligned(size);
}

bool record_queue_add(struct record_queue *q, const struct wire_header *record)
{
	void *room = extend(q, record->size);

	if (!room)
		return false;
	memcpy(room, record, record->size);
	q->added++;
	return true;
}

bool record_queue_is_full(const struct record_queue *q)
{
	return q->blocks >= MAX_BLOCKS;
}

static void drop_first_block(struct record_queue *q)
{
	struct block *block = q->first;

	q->first = block->next;
	if (!q->first)
		q->last = NULL;
	q->blocks--;
	free(block);
}

const struct wire_header *record_queue_next(struct record_queue *q)
{
	const struct wire_header *record;

	while (q->first && q->first->taken == q->first->filled) {
		if (!q->first->next) { /* stays, to be filled again */
			q->first->taken = q->first->filled = 0;
			return NULL;
		}
		drop_first_block(q);
	}
	if (!q->first)
		return NULL;
	record = (const void *)(q->first->bytes + q->first->taken);
	q->first->taken += aligned(record->size);
	q->taken++;
	return record;
}

void record_queue_end(struct record_queue *q)
{
	while (q->first)
		drop_first_block(q);
}
