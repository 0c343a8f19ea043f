/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/rates.h"

#include <stdlib.h>

#include "base/amounts.h"

enum { FEW = 10 }; /* even a short run may have this many stretches */
/* The kernel accounts CPU time at the scheduler's ticks, every 4 ms or 10 ms. */
static const uint64_t tick_ns = 10000000;

static uint64_t shortest(uint64_t duration_ns, size_t most)
{
	const uint64_t few = duration_ns / FEW < tick_ns ? duration_ns / FEW : tick_ns;
	const uint64_t fit = duration_ns / most + 1;

	return fit > few ? fit : few;
}

struct rate *rates_between_steps(const struct recording *r, size_t most, size_t *n)
{
	struct rate *rates = calloc(r->n_steps + 1, sizeof(*rates));
	const struct recording_step *from = r->steps, *begin = r->steps, *last;
	uint64_t least;

	*n = 0;
	if (!rates || !r->n_steps)
		return rates;
	last = &r->steps[r->n_steps - 1];
	least = shortest(since(from->rel_ns, last->rel_ns), most);
	for (const struct recording_step *step = r->steps; step <= last; step++) {
		const uint64_t length = since(from->rel_ns, step->rel_ns);

		if (!length || (length < least && step != last))
			continue;
		/* The rest at the end is too short to stand alone: it joins the last stretch. */
		if (length < least && *n) {
			from = begin;
			--*n;
		}
		rates[(*n)++] = (struct rate){
			.start_ns = from->rel_ns,
			.end_ns = step->rel_ns,
			.usage = usage_between(&from->usage, &step->usage),
		};
		begin = from;
		from = step;
	}
	return rates;
}
