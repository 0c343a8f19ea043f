/* SPDX-License-Identifier: GPL-2.0-only */
/* The line of what a run used: with all that a run may have used, none of it is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/units.h"
#include "report/usage_line.h"

static void test_all(void **state)
{
	static struct recording_totals totals;
	static char line[USAGE_LINE_MAX];
	char expected[256] = "", text[UNITS_TEXT_MAX];

	(void)state;
	memset(&totals.usage, 0x7f, sizeof(totals.usage));
	usage_line(line, &totals);
	for (size_t i = 0; i < N_QUANTITIES; i++) {
		const struct quantity *q = &quantities[i];

		if (!q->column)
			continue;
		snprintf(expected, sizeof(expected), ", %s %s", q->words,
			 quantity_for_people(text, q->unit, quantity_of(q, &totals.usage)));
		assert_non_null(strstr(line, expected));
	}
	assert_string_equal(line + strlen(line) - strlen(expected), expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
