/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * charge.h - how high the charge of a memory cgroup was in a stretch of time.
 *
 * The kernel keeps the highest charge since the cgroup is there. If that rose in the stretch, it is
 * the peak of the stretch. If not, the stretch had what was seen in it, or more.
 *
 * Example, in MiB (charge, highest so far): begin A (10, 10), mark (30, 90), end A (20, 90): the
 * peak of A is 90. begin B (20, 90), mark (40, 90), end B (30, 90): that of B is at least 40.
 */
#ifndef QPROF_CHARGE_H
#define QPROF_CHARGE_H

#include "base/amounts.h"
#include "model/profile.h"

static inline struct profile_charge charge_from_wire(const struct wire_checkpoint *cp,
						     uint64_t page_size)
{
	return (struct profile_charge){cp->charged * page_size, cp->most_charged * page_size};
}

/* seen: the highest charge at checkpoints in between, or 0. */
static inline struct profile_charge_peak
charge_peak(const struct profile_charge *begin, const struct profile_charge *end, uint64_t seen)
{
	struct profile_charge_peak peak = {.bytes = seen, .at_least = true};

	if (!begin->now || !end->now)
		return (struct profile_charge_peak){0};
	if (end->most > begin->most)
		return (struct profile_charge_peak){.bytes = end->most};
	raise_to(&peak.bytes, begin->now);
	raise_to(&peak.bytes, end->now);
	return peak;
}

#endif
