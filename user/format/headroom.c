/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/headroom.h"

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
