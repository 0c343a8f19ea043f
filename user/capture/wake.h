/* SPDX-License-Identifier: GPL-2.0-only */
/* wake.h - what wakes a capture up, timers among it, and the clocks. */
#ifndef QPROF_WAKE_H
#define QPROF_WAKE_H

#include <stdint.h>

#include "base/clock.h"

/* A descriptor, and what is called when it can be read (or written). */
struct wake {
	int fd;
	void (*call)(struct wake *wake);
	void *context;
};

/* The descriptor of a timer that is not set yet. Or -1 and errno. */
int timer_new(void);
/* The timer fires once, in ns nanoseconds; 0: never. */
void timer_set(int fd, uint64_t ns);
/* The timer has fired: it can be waited for again. */
void timer_clear(int fd);

/* CLOCK_REALTIME - CLOCK_MONOTONIC */
int64_t realtime_offset_ns(void);

#endif
