/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/quantities.h"

#include "base/units.h"

enum { TOTALS = false, EVERYWHERE = true };

#define QUANTITY(member, key_, event_key_, unit_, where, group_, words_, column_, since_, means_,  \
		 ...)                                                                              \
	[QUANTITY_OF_##member] = {                                                                 \
		.key = (key_),                                                                     \
		.event_key = (event_key_),                                                         \
		.unit = QUANTITY_##unit_,                                                          \
		.everywhere = (where),                                                             \
		.group = QUANTITY_##group_,                                                        \
		.words = (words_),                                                                 \
		.column = (column_),                                                               \
		.since = (since_),                                                                 \
		.means = (means_),                                                                 \
		.offset = offsetof(struct profile_usage, member),                                  \
	},
const struct quantity quantities[N_QUANTITIES] = {USAGE_QUANTITIES(QUANTITY, )};

/* Each amount of struct profile_usage has its line, once. */
#define ONE(...) +1
_Static_assert(USAGE_QUANTITIES(ONE, ) == N_QUANTITIES, "a line of USAGE_QUANTITIES is missing");

char *quantity_text(char *out, const struct quantity *quantity, uint64_t value)
{
	switch (quantity->unit) {
	case QUANTITY_BYTES:
		return units_mb(out, value);
	case QUANTITY_NS:
		return units_secs(out, value, 6);
	case QUANTITY_COUNT:
		break;
	}
	return units_count(out, value);
}
