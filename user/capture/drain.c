/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "capture/capture.h"

enum { NAP_NS = 100000 };

static const uint64_t ANSWER_NS = 1000000000, ANSWERS_NS = 10000000000;

void capture_read_all(struct capture *c)
{
	unsigned int reads = 0;

	while (reads < c->kind->reads_at_end && capture_read(c) > 0) {
		reads += !c->rings || !rings_wait(c->rings);
		capture_handle_signals(c);
	}
}

/*
 * A process that exits writes the last record of its run or job itself. The kernel side takes that
 * as said (finish_run() in snapshot.bpf.h) before the record can be read: the process is on another
 * CPU, or waits for one. If we did not wait, the last row would be missing.
 */
void capture_read_answers(struct capture *c, bool (*asks)(struct capture *c))
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t now_ns = began_ns, behind_ns = began_ns;
	bool idle = false;

	while (!c->failed && !asks(c)) {
		if (now_ns - behind_ns > ANSWER_NS || now_ns - began_ns > ANSWERS_NS) {
			capture_warn(c, "the end",
				     "a process that was exiting by then did not say what it had "
				     "used: the last row of its run or job is missing");
			return;
		}
		if (idle)
			nanosleep(&nap, NULL);
		idle = capture_read(c) <= 0;
		capture_handle_signals(c);
		now_ns = clock_ns(CLOCK_MONOTONIC);
		if (!idle)
			behind_ns = now_ns;
	}
}

bool capture_asks_in_vain(int err)
{
	return err && err != -ENOSPC;
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
