/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/rings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/record_queue.h"
#include "kernel/ring.h"
#include "kernel/wire_record.h"

enum {
	RECORDS_A_SLICE = 128, /* handed out by one call */
	TURN_NS = 100000000,   /* what arrives is handled for so long before others have a turn */
	ENOUGH = -4095,	       /* no errno */
	READS_AT_ONCE = 16,    /* that find a record still being written */
	NAP_NS = 100000,       /* before each of those that follow */
	READS_IN_VAIN = 10000, /* some two seconds */
};

struct rings {
	int epoll, urgent_fd;
	struct ring *control, *timeline, *urgent;
	struct rings_handler handler;
	struct record_queue queue;
	uint64_t bad;
	bool had_events;      /* since rings_had_events() was asked */
	uint64_t turn_ns;     /* when this turn is over */
	unsigned int in_vain; /* reads that have found a record still being written, in a row */
};

/* Only a search of new code takes long: a program that asks for one over and over would keep us. */
static bool turn_is_over(const struct rings *r, const struct wire_header *record)
{
	return (record->kind == WIRE_MAPPED || record->kind == WIRE_EXEC) &&
	       clock_ns(CLOCK_MONOTONIC) > r->turn_ns;
}

/* A record is consumed whatever this returns. So ENOUGH comes with the last record that fits, not
 * with the first that does not. */
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

static int queue_event(void *context, void *data, size_t size)
{
	struct rings *r = context;

	r->had_events = true;
	return queue_record(r, data, size);
}

static int pass_over(void *context, void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return 0;
}

static int add(struct rings *r, struct ring **ring, int map, ring_record_fn take)
{
	struct epoll_event event = {.events = EPOLLIN};

	*ring = ring_new(map, take, r);
	return *ring ? epoll_ctl(r->epoll, EPOLL_CTL_ADD, map, &event) : -1;
}

struct rings *rings_new(const struct engine *e, const struct rings_handler *handler)
{
	struct rings *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return NULL;
	record_queue_begin(&r->queue);
	r->handler = *handler;
	r->urgent_fd = engine_urgent_fd(e);
	r->urgent = ring_new(r->urgent_fd, pass_over, NULL);
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll >= 0 && r->urgent && !add(r, &r->control, engine_control_fd(e), queue_event) &&
	    !add(r, &r->timeline, engine_timeline_fd(e), queue_record))
		return r;
	err = errno;
	rings_free(r);
	errno = err;
	return NULL;
}

void rings_free(struct rings *r)
{
	if (!r)
		return;
	record_queue_end(&r->queue);
	ring_free(r->urgent);
	ring_free(r->control);
	ring_free(r->timeline);
	if (r->epoll >= 0)
		close(r->epoll);
	free(r);
}

int rings_fd(const struct rings *r)
{
	return r->epoll;
}

int rings_urgent_fd(const struct rings *r)
{
	return r->urgent_fd;
}

static bool has_more(const struct rings *r)
{
	return ring_has_more(r->control) || ring_has_more(r->timeline);
}

/*
 * A CPU may be taken from a program (by the host of a virtual machine, for some milliseconds)
 * between its reservation of a record and its submission. Until then nothing behind it can be read,
 * though it may be there since long: to take that for the end of all records loses them.
 */
static bool expects_more(struct rings *r)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	if (!has_more(r)) {
		r->in_vain = 0;
		return false;
	}
	if (rings_are_stuck(r))
		return false;
	if (r->in_vain++ >= READS_AT_ONCE)
		nanosleep(&nap, NULL);
	return true;
}

bool rings_had_events(struct rings *r)
{
	const bool had = r->had_events;

	r->had_events = false;
	return had;
}

bool rings_wait(const struct rings *r)
{
	return r->in_vain;
}

bool rings_are_stuck(const struct rings *r)
{
	return r->in_vain >= READS_IN_VAIN;
}

int rings_read(struct rings *r)
{
	const struct wire_header *record;
	int err, taken = 0;

	ring_consume(r->urgent); /* first: what comes later may be of a record that comes later */
	if (!record_queue_is_full(&r->queue)) {
		r->turn_ns = clock_ns(CLOCK_MONOTONIC) + TURN_NS;
		taken = ring_consume(r->control);
		if (!taken)
			taken = ring_consume(r->timeline);
		if (taken < 0 && taken != ENOUGH)
			return taken;
	}
	for (int i = 0; i < RECORDS_A_SLICE; i++) {
		record = record_queue_next(&r->queue);
		if (!record)
			return taken == ENOUGH || (i ? has_more(r) : expects_more(r));
		r->in_vain = 0;
		err = r->handler.record(r->handler.context, record);
		if (err)
			return err;
	}
	return 1;
}

struct rings_mark rings_mark(const struct rings *r)
{
	return (struct rings_mark){
		.control = ring_written(r->control),
		.timeline = ring_written(r->timeline),
	};
}

bool rings_are_past(const struct rings *r, struct rings_mark *mark)
{
	const bool read = ring_read_so_far(r->control) >= mark->control &&
			  ring_read_so_far(r->timeline) >= mark->timeline;

	if (read && !mark->queued)
		mark->queued = r->queue.added + 1;
	return mark->queued && r->queue.taken + 1 >= mark->queued;
}

uint64_t rings_bad_records(const struct rings *r)
{
	return r->bad;
}
