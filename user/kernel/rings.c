/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/rings.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/record_queue.h"
#include "kernel/wire_record.h"

enum {
	RECORDS_A_SLICE = 128, /* handed out by one call */
	TURN_NS = 100000000,   /* what arrives is handled for so long before others have a turn */
	ENOUGH = -4095,	       /* no errno */
};

struct rings {
	struct ring_buffer *buffer;
	struct rings_handler handler;
	struct record_queue queue;
	uint64_t bad;
	uint64_t turn_ns; /* when this turn is over */
};

/* Only a search of new code takes long: a program that asks for one over and over would keep us. */
static bool turn_is_over(const struct rings *r, const struct wire_header *record)
{
	return (record->kind == WIRE_MAPPED || record->kind == WIRE_EXEC) &&
	       clock_ns(CLOCK_MONOTONIC) > r->turn_ns;
}

/* libbpf counts a record as consumed whatever this returns. So ENOUGH comes with the last record
 * that fits, not with the first that does not. */
static int queue_record(void *context, void *data, size_t size)
{
	struct rings *r = context;

	if (!wire_record_ok(data, size)) {
		r->bad++;
		return 0;
	}
	r->handler.arrived(r->handler.context, data);
	if (!record_queue_add(&r->queue, data))
		return -ENOMEM;
	return !record_queue_is_full(&r->queue) && !turn_is_over(r, data) ? 0 : ENOUGH;
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
	record_queue_begin(&r->queue);
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

void rings_free(struct rings *r)
{
	if (!r)
		return;
	record_queue_end(&r->queue);
	ring_buffer__free(r->buffer);
	free(r);
}

int rings_fd(const struct rings *r)
{
	return ring_buffer__epoll_fd(r->buffer);
}

int rings_read(struct rings *r)
{
	const struct wire_header *record;
	int err, taken = 0;

	if (!record_queue_is_full(&r->queue)) {
		r->turn_ns = clock_ns(CLOCK_MONOTONIC) + TURN_NS;
		taken = ring_buffer__consume(r->buffer);
		if (taken < 0 && taken != ENOUGH)
			return taken;
	}
	for (int i = 0; i < RECORDS_A_SLICE; i++) {
		record = record_queue_next(&r->queue);
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
