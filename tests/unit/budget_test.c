/* SPDX-License-Identifier: GPL-2.0-only */
/* How much time is spent on what users have made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/budget.h"

enum { MOST = 4000, SHARE = 50, NOW = 1000000, PIECE = 10, ADA = 1000, GRACE = 1001 };

static const struct budget whole = {.most = MOST, .share = SHARE};

/* As much as there is for that user at that time, in pieces. */
static uint64_t spend_all(struct budget *b, uid_t uid, uint64_t now)
{
	uint64_t spent = 0;

	for (; spent <= MOST && budget_has(b, uid, now); spent += PIECE)
		budget_spend(b, uid, now, PIECE);
	return spent;
}

/* One user has half; another half of the rest; and so on. */
static void test_no_more_than_is_left_for_others(void **state)
{
	struct budget b = whole;

	(void)state;
	assert_true(budget_is_full(&b, NOW));
	assert_int_equal(spend_all(&b, ADA, NOW), MOST / 2);
	assert_false(budget_is_full(&b, NOW));
	assert_int_equal(spend_all(&b, GRACE, NOW), MOST / 4);
	assert_int_equal(spend_all(&b, 0, NOW), MOST / 8);
	assert_int_equal(budget_spent_on(&b, ADA, NOW), MOST / 2);
	assert_int_equal(budget_spent_on(&b, 7, NOW), 0);
}

/* In the long run a user who takes all that he gets has 1/SHARE of the time. */
static void test_it_fills_up_again(void **state)
{
	const uint64_t secs = 1000, ticks = secs * 1000;
	struct budget b = whole;
	uint64_t spent = 0;

	(void)state;
	for (uint64_t now = NOW; now < NOW + ticks; now += PIECE)
		spent += spend_all(&b, ADA, now);
	assert_in_range(spent, ticks / SHARE, ticks / SHARE + MOST / 2 + PIECE);
	assert_true(budget_has(&b, GRACE, NOW + ticks));
}

/* More users than there are accounts take no more than there is. */
static void test_many_users(void **state)
{
	struct budget b = whole;
	uint64_t spent = 0;

	(void)state;
	for (uid_t uid = ADA; uid < ADA + 3 * BUDGET_USERS; uid++)
		if (budget_has(&b, uid, NOW)) {
			budget_spend(&b, uid, NOW, 100);
			spent += 100;
		}
	assert_int_equal(spent, MOST);
	assert_true(budget_is_spent(&b, NOW));
	assert_false(budget_has(&b, GRACE, NOW));
	assert_true(budget_has(&b, 1, NOW + 100 * SHARE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_more_than_is_left_for_others),
		cmocka_unit_test(test_it_fills_up_again),
		cmocka_unit_test(test_many_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
