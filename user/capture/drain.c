/* SPDX-License-Identifier: GPL-2.0-only */
#include <time.h>

#include "base/clock.h"
#include "capture/capture.h"

enum { NAP_NS = 100000 };

static const uint64_t ANSWER_NS = 1000000000;

void capture_read_all(struct capture *c)
{
	for (unsigned int i = 0; i < c->kind->reads_at_end && capture_read(c) > 0; i++)
		capture_handle_signals(c);
}

/*
 * Who is about to exit has said that it answers, and does so in a moment: it is on another CPU, or
 * has none. To go without it would leave out the last row.
 */
void capture_read_answers(struct capture *c, bool (*asks)(struct capture *c))
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t came_ns = clock_ns(CLOCK_MONOTONIC);
	bool idle = false;

	while (!c->failed && !asks(c)) {
		if (idle)
			nanosleep(&nap, NULL);
		idle = capture_read(c) <= 0;
		capture_handle_signals(c);
		if (!idle)
			came_ns = clock_ns(CLOCK_MONOTONIC);
		else if (clock_ns(CLOCK_MONOTONIC) - came_ns > ANSWER_NS)
			return;
	}
}

void capture_drain(struct capture *c)
{
	c->stop = true;
	c->kind->drain(c);
	if (c->failed || !capture_quality(c)->kernel.lost_process_events)
		return;
	/* Records of processes were lost, perhaps exits. A process that is gone and whose exit is
	 * not in the rings has lost its own. */
	c->kind->mark_gone(c);
	capture_read_all(c);
}
