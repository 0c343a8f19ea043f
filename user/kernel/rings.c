/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/rings.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/wire_record.h"

enum {
	BLOCK_SIZE = 256 << 10,
	MAX_BLOCKS = 1024,     /* 256 MiB; beyond, records stay in the ring */
	RECORDS_A_SLICE = 128, /* handed out by one call */
	TURN_NS = 100000000,   /* what arrives is handled for so long before others have a turn */
	ENOUGH = -4095,	       /* no errno */
};

/* A block of the queue. Its records follow each other, each 8-byte aligned. */
struct block {
	struct block *next;
	size_t filled, taken;
	unsigned char bytes[] __attribute__((aligned(8)));
};

struct rings {
	struct ring_buffer *buffer;
	struct rings_handler handler;
	struct block *first, *last;
	size_t blocks;
	uint64_t bad;
	uint64_t turn_ns; /* when this turn is over */
};

/* Only a search of new code takes long: a program that asks for one over and over would keep us. */
static bool turn_is_over(const struct rings *r, const struct wire_header *record)
{
	return (record->kind == WIRE_MAPPED || record->kind == WIRE_EXEC) &&
	       clock_ns(CLOCK_MONOTONIC) > r->turn_ns;
}

static size_t aligned(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

/* Returns room for a record at the end of the queue, or NULL if there is no memory. */
static void *extend(struct rings *r, size_t size)
{
	struct block *block = r->last;

	if (!block || block->filled + aligned(size) > BLOCK_SIZE) {
		block = malloc(sizeof(*block) + BLOCK_SIZE);
		if (!block)
			return NULL;
		*block = (struct block){0};
		if (r->last)
			r->last->next = block;
		else
			r->first = block;
		r->last = block;
		r->blocks++;
	}
	block->filled += aligned(size);
	return block->bytes + block->filled - aligned(size);
}

/* libbpf counts a record as consumed whatever this returns. So ENOUGH comes with the last record
 * that fits, not with the first that does not. */
static int queue_record(void *context, void *data, size_t size)
{
	struct rings *r = context;
	void *room;

	if (!wire_record_ok(data, size)) {
		r->bad++;
		return 0;
	}
	r->handler.arrived(r->handler.context, data);
	room = extend(r, size);
	if (!room)
		return -ENOMEM;
	memcpy(room, data, size);
	return r->blocks < MAX_BLOCKS && !turn_is_over(r, data) ? 0 : ENOUGH;
}

/*
 * Children read no rings. A fork would copy the entries of each of their pages, 4,352 of them: of
 * what is mapped of a ring beyond its first page, which says how far it was read.
 */
static void keep_from_children(void)
{
	const unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long offset;
	void *start, *end;
	char line[PATH_MAX + 128];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, " anon_inode:bpf-map\n") &&
		    sscanf(line, "%p-%p %*4s %lx", &start, &end, &offset) == 3 && offset == page &&
		    madvise(start, (size_t)((char *)end - (char *)start), MADV_DONTFORK))
			log_verbose("rings are mapped in children, too: %s", strerror(errno));
	if (maps)
		fclose(maps);
}

struct rings *rings_new(const struct engine *e, const struct rings_handler *handler)
{
	struct rings *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return NULL;
	/* Blocks are mapped, so that the memory of a burst goes back to the system after it. On the
	 * heap something small would lie above them and keep it. */
	mallopt(M_MMAP_THRESHOLD, BLOCK_SIZE);
	r->handler = *handler;
	r->buffer = ring_buffer__new(engine_control_fd(e), queue_record, r, NULL);
	if (!r->buffer)
		goto fail;
	err = ring_buffer__add(r->buffer, engine_timeline_fd(e), queue_record, r);
	if (err) {
		errno = -err;
		goto fail;
	}
	keep_from_children();
	return r;
fail:
	rings_free(r);
	return NULL;
}

static void drop_first_block(struct rings *r)
{
	struct block *block = r->first;

	r->first = block->next;
	if (!r->first)
		r->last = NULL;
	r->blocks--;
	free(block);
}

void rings_free(struct rings *r)
{
	if (!r)
		return;
	while (r->first)
		drop_first_block(r);
	ring_buffer__free(r->buffer);
	free(r);
}

int rings_fd(const struct rings *r)
{
	return ring_buffer__epoll_fd(r->buffer);
}

/* Takes the oldest record out of the queue; NULL if it is empty. */
static const struct wire_header *next_record(struct rings *r)
{
	const struct wire_header *record;

	while (r->first && r->first->taken == r->first->filled) {
		if (!r->first->next) { /* stays, to be filled again */
			r->first->taken = r->first->filled = 0;
			return NULL;
		}
		drop_first_block(r);
	}
	if (!r->first)
		return NULL;
	record = (const void *)(r->first->bytes + r->first->taken);
	r->first->taken += aligned(record->size);
	return record;
}

int rings_read(struct rings *r)
{
	const struct wire_header *record;
	int err, taken = 0;

	if (r->blocks < MAX_BLOCKS) {
		r->turn_ns = clock_ns(CLOCK_MONOTONIC) + TURN_NS;
		taken = ring_buffer__consume(r->buffer);
		if (taken < 0 && taken != ENOUGH)
			return taken;
	}
	for (int i = 0; i < RECORDS_A_SLICE; i++) {
		record = next_record(r);
		if (!record)
			return taken == ENOUGH;
		err = r->handler.record(r->handler.context, record);
		if (err)
			return err;
	}
	return 1;
}

uint64_t rings_bad_records(const struct rings *r)
{
	return r->bad;
}
