/* SPDX-License-Identifier: GPL-2.0-only */
/* How long file systems that do not answer are waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/patience.h"

enum { MOST_MS = 1000, FILE_MS = 250, ADA = 1, GRACE = 2 };

static void test_a_user_rests(void **state)
{
	struct patience p = {.most_ms = MOST_MS};
	const uint64_t now = 50000, later = now + PATIENCE_REST_MS;

	(void)state;
	assert_true(patience_has(&p, ADA, now));
	patience_lose(&p, ADA, now, FILE_MS);
	assert_false(patience_has(&p, ADA, now + 1));
	assert_true(patience_has(&p, GRACE, now + 1));
	assert_false(patience_has(&p, ADA, later - 1));
	assert_true(patience_rests(&p, ADA, later - 1));
	assert_false(patience_rests(&p, ADA, later));
	assert_true(patience_has(&p, ADA, later));
}

static void test_all_users_together_rest(void **state)
{
	struct patience p = {.most_ms = MOST_MS};
	const uint64_t now = 50000;
	uint64_t lost = 0;
	uid_t uid = ADA;

	(void)state;
	for (; uid < 1000 && patience_has(&p, uid, now + lost); uid++) {
		patience_lose(&p, uid, now + lost, FILE_MS);
		lost += FILE_MS;
	}
	assert_int_equal(lost, MOST_MS);
	assert_false(patience_has(&p, uid, now + PATIENCE_REST_MS - 1));
	assert_true(patience_has(&p, uid, now + PATIENCE_REST_MS));
}

/* Each answer takes its time, too: a flood of questions to one that answers is no way around. */
static void test_answers_take_time(void **state)
{
	struct patience p = {.most_ms = MOST_MS};
	const uint64_t now = 50000;
	uint64_t asked = 0;

	(void)state;
	for (; asked <= MOST_MS && patience_has(&p, ADA, now); asked++)
		patience_spend(&p, 1);
	assert_int_equal(asked, MOST_MS);
	assert_false(patience_rests(&p, ADA, now));
	assert_true(patience_has(&p, ADA, now + PATIENCE_REST_MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_rests),
		cmocka_unit_test(test_all_users_together_rest),
		cmocka_unit_test(test_answers_take_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
