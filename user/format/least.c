/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/least.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "format/fields.h"

/* "825 MiB inherited at fork, 17.3 MiB mapped files" */
static void put_kinds(char *out, size_t size, const struct recording_peak *peak)
{
	const struct {
		uint64_t bytes;
		const char *what;
	} kinds[] = {
		{peak->inherited, "inherited at fork"},
		{peak->repeated_shmem, "shmem"},
		{peak->repeated_file, "mapped files"},
	};
	char bytes[UNITS_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (kinds[i].bytes)
			n += (size_t)snprintf(out + n, size - n, "%s%s %s", n ? ", " : "",
					      units_bytes_for_people(bytes, kinds[i].bytes),
					      kinds[i].what);
	}
}

bool least_of_peak(char out[LEAST_WORDS_MAX], const struct recording_peak *peak, uint64_t rss,
		   bool in_full)
{
	const size_t key = field_find(&record_peak, "at_least_mb", strlen("at_least_mb"));
	char least[UNITS_TEXT_MAX], shared[LEAST_WORDS_MAX / 2] = "";

	if (!field_has(&record_peak, peak, key) || rss - rss / 100 <= peak->least)
		return false;
	if (in_full)
		put_kinds(shared, sizeof(shared), peak);
	else
		units_bytes_for_people(shared, rss - peak->least);
	snprintf(out, LEAST_WORDS_MAX,
		 "at least %s if each page counts once: processes may share up to %s",
		 units_bytes_for_people(least, peak->least), shared);
	return true;
}

bool need_has_bounds(const struct recording_need *need)
{
	char least[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];

	return need->knows_least && strcmp(units_bytes_for_people(least, need->least),
					   units_bytes_for_people(most, need->most)) != 0;
}

void least_of_need(char out[LEAST_WORDS_MAX], const struct recording_need *need, bool is_killed)
{
	static const char kinds[] = "anon, shmem and what is in swap";
	static const char why[] = "; processes may share shmem and what they inherited at fork";
	const bool has_bounds = need_has_bounds(need);
	char least[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];

	units_bytes_for_people(least, need->least);
	units_bytes_for_people(most, need->most);
	if (!need->knows_least)
		snprintf(out, LEAST_WORDS_MAX, "%s at most %s (%s%s)",
			 is_killed ? "Had, when it was killed," : "Needs", most, kinds, why);
	else if (is_killed)
		snprintf(out, LEAST_WORDS_MAX, "Needs MORE than %s%s%s (%s%s)", least,
			 has_bounds ? ", had at most " : "", has_bounds ? most : "", kinds,
			 has_bounds ? why : "");
	else
		snprintf(out, LEAST_WORDS_MAX, "Needs at least %s%s%s (%s%s)", least,
			 has_bounds ? ", at most " : "", has_bounds ? most : "", kinds,
			 has_bounds ? why : "");
}
