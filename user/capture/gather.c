/* SPDX-License-Identifier: GPL-2.0-only */
#include <sys/epoll.h>

#include "base/clock.h"
#include "capture/capture.h"

/* Points of curves wait, too: not for long where somebody looks at how memory grows, nor in a
 * served run. */
static uint64_t gather_ns(const struct capture *c)
{
	return c->prompt || !c->engine || discovery_hears_items(c->discovery) ||
			       engine_points_wake(c->engine)
		       ? c->kind->prompt_ns
		       : c->kind->gather_ns;
}

/* Not by removing it: to add it again takes memory. */
static void leave_ring(struct capture *c, bool alone)
{
	struct epoll_event event = {.events = alone ? 0 : EPOLLIN, .data.ptr = &c->ring};

	epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->ring.fd, &event);
}

/* What is asked of a GPU's driver at a row is to be of that moment. */
bool capture_may_gather(const struct capture *c)
{
	return c->rings && c->kind->gather_ns && !c->hurried && !engine_gpu_loaded(c->engine);
}

/*
 * After events were read, lets more of them gather: to wake us up for each would cost more than
 * the record, and most of that whoever sends it. When none has come meanwhile, the next one wakes
 * us up. Who waits for us does so in any case: see rings_urgent_fd().
 */
void capture_gather(struct capture *c)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), next = c->read_ns + gather_ns(c);

	if (next <= now)
		return;
	leave_ring(c, true);
	if (c->engine)
		engine_say_gathers(c->engine, true);
	capture_wait(c, (int)((next - now + 999999) / 1000000));
	if (c->engine)
		engine_say_gathers(c->engine, false);
	leave_ring(c, false);
}
