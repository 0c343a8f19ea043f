/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/charged.h"

#include <stdio.h>

#include "base/units.h"

bool charged_words(char out[CHARGED_WORDS_MAX], const struct recording *r, bool is_killed)
{
	const struct recording_totals *t = &r->totals;
	char most[UNITS_TEXT_MAX], needs[UNITS_TEXT_MAX], kept[CHARGED_WORDS_MAX / 2] = "";

	if (!t->charge_peak.bytes || t->charge_peak.at_least)
		return false;
	units_bytes_for_people(most, t->charge_peak.bytes);
	if (t->max_charged)
		snprintf(kept, sizeof(kept),
			 ", of which %s or more is no page cache (anon, shmem, the kernel's own)",
			 units_bytes_for_people(needs, t->max_charged));
	if (is_killed)
		snprintf(out, CHARGED_WORDS_MAX, "Its memory cgroup was charged up to %s%s", most,
			 kept);
	else
		snprintf(out, CHARGED_WORDS_MAX,
			 "A memory limit of %s is enough: so much was charged, page cache%s "
			 "included%s",
			 most, r->run.memory_cgroup_is_own ? "" : " and others in its cgroup",
			 kept);
	return true;
}
