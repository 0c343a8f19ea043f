/* SPDX-License-Identifier: GPL-2.0-only */
/* Nobody takes all connections, and nobody who is alone loses one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "audit/metrics/turns.h"

enum { A = 1000, B = 2000, C = 3000 };

static struct turns turns;
static int next_fd;

static int set_up(void **state)
{
	(void)state;
	turns_begin(&turns);
	next_fd = 10;
	return 0;
}

static struct peer user(uint32_t uid)
{
	return (struct peer){.is_user = true, .uid = uid};
}

/* Serves whom it can; ends what has to, as the server does. */
static void serve(void)
{
	struct turn *turn, *ends;

	do {
		turn = turns_next(&turns, &ends);
		if (ends)
			turns_end(ends);
	} while (turn || ends);
}

static void come(uint32_t uid, unsigned int times)
{
	const struct peer peer = user(uid);

	for (unsigned int i = 0; i < times; i++) {
		turns_come(&turns, next_fd++, &peer);
		serve();
	}
}

static unsigned int count(uint32_t uid, bool served)
{
	const struct peer peer = user(uid);
	unsigned int n = 0;

	for (size_t i = 0; i < TURNS_ALL; i++)
		n += turns.all[i].fd >= 0 && turns.all[i].served == served &&
		     peer_is(&turns.all[i].peer, &peer);
	return n;
}

static void test_one_alone_has_all(void **state)
{
	(void)state;
	come(A, TURNS_PLACES + 3);
	assert_int_equal(count(A, true), TURNS_PLACES);
	assert_int_equal(count(A, false), 3);
	assert_int_equal(turns.n_cut_short, 0);
}

static void test_another_is_served_at_once(void **state)
{
	(void)state;
	come(A, 1000);
	assert_int_equal(count(A, true), TURNS_PLACES);
	come(B, 1);
	assert_int_equal(count(B, true), 1);
	assert_int_equal(count(A, true), TURNS_PLACES - 1);
}

static void test_two_come_to_have_the_same(void **state)
{
	(void)state;
	come(A, 1000);
	come(B, 1000);
	assert_int_equal(count(A, true), TURNS_PLACES / 2);
	assert_int_equal(count(B, true), TURNS_PLACES / 2);
	come(C, 1);
	assert_int_equal(count(C, true), 1);
}

static void test_a_place_goes_to_who_has_fewest(void **state)
{
	(void)state;
	come(A, 1000);
	come(B, 3);
	for (size_t i = 0; i < TURNS_ALL; i++) {
		if (!turns.all[i].served || turns.all[i].peer.uid != A)
			continue;
		turns_end(&turns.all[i]);
		break;
	}
	come(C, 0);
	serve();
	assert_int_equal(count(A, true) + count(B, true), TURNS_PLACES);
	assert_int_equal(count(B, true), 3);
	assert_int_equal(count(B, false), 0);
}

static void test_who_lost_calls_is_known(void **state)
{
	(void)state;
	come(A, TURNS_ALL + 5);
	assert_int_equal(turns.n_cut_short, 5);
	assert_int_equal(turns.cut_short[0].calls, 5);
	assert_int_equal(turns.cut_short[0].peer.uid, A);
	assert_int_equal(turns.cut_short[1].calls, 0);
	come(B, 1);
	assert_int_equal(turns.n_cut_short, 7); /* one that waited, and one that was served */
	assert_int_equal(turns.cut_short[0].calls, 7);
}

static void test_hosts_and_users_are_not_mixed_up(void **state)
{
	struct peer host = {.host = {0x20, 1}}, other = {.host = {0x20, 2}}, root = user(0);

	(void)state;
	assert_true(peer_is(&host, &host));
	assert_false(peer_is(&host, &other));
	assert_false(peer_is(&host, &root));
	assert_true(peer_is(&root, &root));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_one_alone_has_all, set_up),
		cmocka_unit_test_setup(test_another_is_served_at_once, set_up),
		cmocka_unit_test_setup(test_two_come_to_have_the_same, set_up),
		cmocka_unit_test_setup(test_a_place_goes_to_who_has_fewest, set_up),
		cmocka_unit_test_setup(test_who_lost_calls_is_known, set_up),
		cmocka_unit_test(test_hosts_and_users_are_not_mixed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
