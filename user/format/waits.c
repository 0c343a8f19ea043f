/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/waits.h"

#include <stdio.h>

#include "base/units.h"

enum { A_FIFTH = 5 };
static const uint64_t LEAST_NS = 100000000;

/* Returns the pair that more than half of all waiting was in, or NULL. If there are several, each
 * is within another: the innermost. */
static const struct recording_phase *phase_of_waits(const struct recording *r)
{
	const uint64_t half = r->totals.usage.cpu_wait_ns / 2;
	const struct recording_phase *found = NULL;

	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];

		if (phase->kind == PROFILE_PHASE_PAIR && phase->usage.cpu_wait_ns > half &&
		    (!found || phase->depth >= found->depth))
			found = phase;
	}
	return found;
}

bool waits_sentence(char out[WAITS_TEXT_MAX], const struct recording *r)
{
	const uint64_t wait = r->totals.usage.cpu_wait_ns;
	const uint64_t all = wait + r->totals.usage.cpu_ns;
	const struct recording_phase *phase;
	char time[UNITS_TEXT_MAX];

	if (wait < LEAST_NS || wait < all / A_FIFTH)
		return false;
	phase = phase_of_waits(r);
	snprintf(out, WAITS_TEXT_MAX,
		 "%.0f %% of the time in which threads could have run they waited for a CPU: %s%s"
		 "%.200s",
		 100.0 * (double)wait / (double)all, units_time_for_people(time, wait),
		 phase ? ", most of it in " : "", phase ? phase->shown : "");
	return true;
}
