/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/charged.h"

#include <stdio.h>

#include "base/units.h"

enum { OTHERS_MAX = 128 };

/* Who reads a charge takes it for the run's. */
static const char *whose(const struct recording *r, char out[OTHERS_MAX])
{
	if (r->run.memory_cgroup_is_own)
		return "";
	snprintf(out, OTHERS_MAX, " for all that is in cgroup %.80s, this run or not",
		 r->run.memory_cgroup ? r->run.memory_cgroup : "?");
	return out;
}

bool charged_words(char out[CHARGED_WORDS_MAX], const struct recording *r, bool is_killed)
{
	const struct recording_totals *t = &r->totals;
	char others[OTHERS_MAX], most[UNITS_TEXT_MAX], needs[UNITS_TEXT_MAX],
		kept[CHARGED_WORDS_MAX / 2] = "";

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
			 "A memory limit of %s is enough%s: so much was charged, page cache "
			 "included%s",
			 most, whose(r, others), kept);
	return true;
}
