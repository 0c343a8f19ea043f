/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/headroom.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "format/fields.h"

char *headroom_words(char out[HEADROOM_TEXT_MAX], uint64_t left, uint64_t limit, const char *of,
		     const char *phase)
{
	char bytes[UNITS_TEXT_MAX], all[UNITS_TEXT_MAX];

	snprintf(out, HEADROOM_TEXT_MAX, "%s left of %s (%.300s)%s%.300s",
		 units_bytes_for_people(bytes, left), units_bytes_for_people(all, limit), of,
		 phase ? ", in " : "", phase ? phase : "");
	return out;
}

char *headroom_end_words(char out[HEADROOM_TEXT_MAX], const struct growth_end *end, uint64_t limit,
			 const char *of)
{
	char each[UNITS_TEXT_MAX], all[UNITS_TEXT_MAX], time[UNITS_TEXT_MAX];

	snprintf(out, HEADROOM_TEXT_MAX,
		 "%.128s grows %s each: %s (%.300s) at about #%" PRIu64 ", in %s", end->name,
		 units_bytes_for_people(each, end->per_repeat), units_bytes_for_people(all, limit),
		 of, end->at_repeat, units_time_for_people(time, end->ns));
	return out;
}

bool headroom_sentence(char out[HEADROOM_TEXT_MAX], const struct recording *r)
{
	const struct recording_closest *c = &r->closest;
	char words[HEADROOM_TEXT_MAX], when[UNITS_TEXT_MAX];

	if (!c->limit || !headroom_is_short(c->limit, c->left))
		return false;
	headroom_words(words, c->left, c->limit, c->of ? c->of : "?", NULL);
	if (c->phase)
		snprintf(out, HEADROOM_TEXT_MAX, "to its limit in %.300s: %.700s", c->phase, words);
	else
		snprintf(out, HEADROOM_TEXT_MAX, "to its limit at %s: %.700s",
			 units_time_for_people(when, c->time_ns), words);
	return true;
}
