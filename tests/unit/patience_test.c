/* SPDX-License-Identifier: GPL-2.0-only */
/* How long file systems that do not answer are waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/patience.h"

enum { MOST_MS = 1000, FILE_MS = 250, LATE_MS = 240, ADA = 1, GRACE = 2 };

static void test_a_user_rests(void **state)
{
	struct patience p = PATIENCE(MOST_MS);
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
	struct patience p = PATIENCE(MOST_MS);
	const uint64_t now = 50000;
	uint64_t lost = 0;
	uid_t uid = ADA;

	(void)state;
	for (; uid < 1000 && patience_has(&p, uid, now); uid++) {
		patience_lose(&p, uid, now, FILE_MS);
		lost += FILE_MS;
	}
	assert_int_equal(lost, MOST_MS);
	assert_false(patience_has(&p, uid, now));
	assert_true(patience_has(&p, uid, now + PATIENCE_REST_MS / 2));
	assert_false(patience_has(&p, ADA, now + PATIENCE_REST_MS / 2));
}

/* Each answer takes its time, too: files that answer just in time are no way around. */
static void test_late_answers_take_time(void **state)
{
	struct patience p = PATIENCE(MOST_MS);
	const uint64_t now = 50000;
	unsigned int asked = 0;

	(void)state;
	for (; asked <= MOST_MS && patience_has(&p, ADA, now); asked++)
		patience_spend(&p, ADA, now, LATE_MS);
	assert_int_equal(asked, 3);
	assert_false(patience_rests(&p, ADA, now));
	assert_true(patience_has(&p, GRACE, now));
	assert_true(patience_has(&p, ADA, now + PATIENCE_REST_MS));
}

static void test_for_ever(void **state)
{
	struct patience p = PATIENCE(UINT64_MAX);

	(void)state;
	patience_spend(&p, ADA, 50000, MOST_MS);
	assert_true(patience_has(&p, ADA, 50000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_rests),
		cmocka_unit_test(test_all_users_together_rest),
		cmocka_unit_test(test_late_answers_take_time),
		cmocka_unit_test(test_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
