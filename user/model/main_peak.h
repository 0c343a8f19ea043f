/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * main_peak.h - the highest RSS of the first process since WIRE_START, which a process of a machine
 * has reached long after its own start. Either it is the highest of all its life; or its own
 * records have told it, each the highest since the one before.
 */
#ifndef QPROF_MAIN_PEAK_H
#define QPROF_MAIN_PEAK_H

#include <stdbool.h>

#include "model/processes.h"

struct main_peak {
	uint64_t before; /* the highest of its life at WIRE_START */
	uint64_t told;
	bool whole; /* they told it up to its end, or to the run's */
};

/* is_first: the first process hit it. */
static inline void main_peak_checkpoint(struct main_peak *peak, bool is_first, uint64_t page_size,
					const struct wire_checkpoint *cp)
{
	const struct profile_memory own = memory_from_wire(&cp->own.memory, page_size);

	if (cp->what == WIRE_START)
		*peak = (struct main_peak){.before = own.peak, .told = own.rss};
	else if (is_first)
		raise_to(&peak->told, own.step_peak);
	peak->whole |= cp->what == WIRE_FINISH && is_first && cp->h.started_ns;
}

/* The first process has exited. */
static inline void main_peak_exit(struct main_peak *peak, uint64_t step_peak)
{
	raise_to(&peak->told, step_peak);
	peak->whole = true;
}

#endif
