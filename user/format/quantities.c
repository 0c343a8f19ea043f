/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/quantities.h"

#include "base/units.h"

enum { TOTALS, EVERYWHERE, IF_ANY, IF_ASKED, IN_RUNS, IN_TREES };

#define QUANTITY(member, stem_, unit_, where, group_, words_, column_, compared, row, since_,      \
		 means, ...)                                                                       \
	[QUANTITY_OF_##member] = {                                                                 \
		.stem = stem_,                                                                     \
		.key = QUANTITY_KEY_##unit_(stem_),                                                \
		.exact_key = QUANTITY_EXACT_##unit_(stem_),                                        \
		.event_key = QUANTITY_EVENT_##unit_(member, stem_),                                \
		.unit = QUANTITY_##unit_,                                                          \
		.everywhere = (where) != TOTALS,                                                   \
		.if_any = (where) == IF_ANY || (where) == IF_ASKED,                                \
		.if_asked = (where) == IF_ASKED,                                                   \
		.in_audits = (where) != IN_RUNS && (where) != IN_TREES,                            \
		.group = QUANTITY_##group_,                                                        \
		.words = (words_),                                                                 \
		.column = (column_),                                                               \
		.since = (since_),                                                                 \
		.offset = offsetof(struct profile_usage, member),                                  \
	},
#define TITLES(name, phase, process) [QUANTITY_##name] = {(phase), (process)},
const struct quantity_titles quantity_groups[QUANTITY_GROUPS] = {QUANTITY_GROUP_LIST(TITLES)};

const struct quantity quantities[N_QUANTITIES] = {USAGE_QUANTITIES(QUANTITY, )};

/* Each amount of struct profile_usage has its line, once. */
#define ONE(...) +1 /* NOLINT(bugprone-macro-parentheses): the lines are a sum */
_Static_assert(USAGE_QUANTITIES(ONE, ) == N_QUANTITIES, "a line of USAGE_QUANTITIES is missing");

char *quantity_text(char *out, enum quantity_unit unit, uint64_t value)
{
	switch (unit) {
	case QUANTITY_BYTES:
		return units_mb(out, value);
	case QUANTITY_NS:
		return units_secs(out, value, 6);
	case QUANTITY_COUNT:
		break;
	}
	return units_count(out, value);
}

char *quantity_for_people(char *out, enum quantity_unit unit, uint64_t value)
{
	switch (unit) {
	case QUANTITY_BYTES:
		return units_bytes_for_people(out, value);
	case QUANTITY_NS:
		return units_time_for_people(out, value);
	case QUANTITY_COUNT:
		break;
	}
	return units_count(out, value);
}
