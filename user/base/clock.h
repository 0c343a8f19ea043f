/* SPDX-License-Identifier: GPL-2.0-only */
/* clock.h - what time it is. */
#ifndef QPROF_CLOCK_H
#define QPROF_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t clock_ns(clockid_t clock);
/* Milliseconds of CLOCK_MONOTONIC, for deadlines. */
uint64_t clock_ms(void);

#endif
