/* SPDX-License-Identifier: GPL-2.0-only */
/* What reports ask of a recording, each calculated in one place. */
#include "recording.h"

#include <string.h>

#include "arena.h"

void recording_free(struct recording *r)
{
	arena_free(r->arena);
	memset(r, 0, sizeof(*r));
}

uint64_t recording_peak_ns(const struct recording *r)
{
	const struct recording_point *high = NULL;

	if (r->peak.has)
		return r->peak.time_ns;
	for (size_t i = 0; i < r->n_points; i++) {
		if (!high || recording_point_rss(&r->points[i]) > recording_point_rss(high))
			high = &r->points[i];
	}
	return high ? high->time_ns : 0;
}

const struct recording_phase *recording_peak_phase(const struct recording *r)
{
	const uint64_t when = recording_peak_ns(r);
	const struct recording_phase *found = NULL;

	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (phase->start_ns <= when && when - phase->start_ns <= phase->duration_ns &&
		    phase->peak_rss == r->totals.peak_rss)
			found = phase;
	}
	return found;
}
