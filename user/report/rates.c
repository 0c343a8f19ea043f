/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/rates.h"

#include <stdlib.h>

enum { FEW = 10 }; /* stretches that even a short run may have */
/* The kernel accounts CPU time by the scheduler's ticks, 4 ms or 10 ms apart. */
static const uint64_t tick_ns = 10000000;

static uint64_t more(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

static struct profile_usage usage_between(const struct profile_usage *a,
					  const struct profile_usage *b)
{
	return (struct profile_usage){
		.io_read = more(a->io_read, b->io_read),
		.io_write = more(a->io_write, b->io_write),
		.disk_read = more(a->disk_read, b->disk_read),
		.disk_write = more(a->disk_write, b->disk_write),
		.cpu_ns = more(a->cpu_ns, b->cpu_ns),
	};
}

static uint64_t shortest(uint64_t duration_ns, size_t most)
{
	const uint64_t few = duration_ns / FEW < tick_ns ? duration_ns / FEW : tick_ns;
	const uint64_t fit = duration_ns / most + 1;

	return fit > few ? fit : few;
}

struct rate *rates_between_steps(const struct recording *r, size_t most, size_t *n)
{
	struct rate *rates = calloc(r->n_steps + 1, sizeof(*rates));
	const struct recording_step *from = r->steps, *begin = r->steps;
	const struct recording_step *last = r->steps + r->n_steps - (r->n_steps > 0);
	uint64_t least;

	*n = 0;
	if (!rates || !r->n_steps)
		return rates;
	least = shortest(more(from->rel_ns, last->rel_ns), most);
	for (const struct recording_step *step = r->steps; step <= last; step++) {
		const uint64_t length = more(from->rel_ns, step->rel_ns);

		if (!length || (length < least && step != last))
			continue;
		/* What is left at the end is too short to stand alone. */
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
