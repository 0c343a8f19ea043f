/* SPDX-License-Identifier: GPL-2.0-only */
/* How much CPU time the searches of a process may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/pacing.h"

enum { MS = 1000000, TOOK = 20 * MS };

static const struct pace_key ada = {1, 100}, grace = {2, 200};
static const uint64_t second = 1000 * (uint64_t)MS, begin = 1000 * (uint64_t)MS;

/* Has the process searched for as long as it may, `each` ns apart. Returns how often. */
static unsigned int search(struct pacing *p, struct pace_key process, uint64_t *now, uint64_t each)
{
	unsigned int n = 0;

	for (; pacing_allows(p, process, *now) && n < 1000; n++) {
		pacing_spend(p, process, *now, TOOK);
		*now += each;
	}
	return n;
}

static void test_a_burst_and_then_a_share(void **state)
{
	struct pacing p = {0};
	uint64_t now = begin;

	(void)state;
	assert_int_equal(search(&p, ada, &now, 0), PACING_BURST_NS / TOOK);
	assert_true(pacing_allows(&p, grace, now));
	/* One search each 20 times as long as it takes. */
	now++;
	assert_int_equal(search(&p, ada, &now, 0), 1);
	now += (uint64_t)TOOK * PACING_SHARE - 1;
	assert_false(pacing_allows(&p, ada, now));
	assert_true(pacing_allows(&p, ada, now + 1));
	pacing_free(&p);
}

static void test_who_asks_seldom_is_never_put_off(void **state)
{
	struct pacing p = {0};
	uint64_t now = begin;

	(void)state;
	assert_int_equal(search(&p, ada, &now, (uint64_t)TOOK * PACING_SHARE), 1000);
	pacing_free(&p);
}

static void test_those_put_off_take_turns(void **state)
{
	struct pacing p = {0};
	struct pace_key next;
	uint64_t now = begin;

	(void)state;
	assert_int_equal(pacing_due_ns(&p), 0);
	assert_true(pacing_put_off(&p, ada, now));
	assert_false(pacing_put_off(&p, ada, now));
	assert_true(pacing_put_off(&p, grace, now));
	assert_false(pacing_allows(&p, ada, now));
	assert_true(pacing_is_queued(&p, ada));
	assert_true(pacing_next(&p, now, &next));
	assert_int_equal(next.tgid, ada.tgid);
	assert_false(pacing_is_queued(&p, ada));
	pacing_rest(&p, now, TOOK);
	/* It asks again at once: behind the other. */
	assert_true(pacing_put_off(&p, ada, now));
	assert_int_equal(pacing_due_ns(&p), now + (uint64_t)TOOK * (PACING_SHARE - 1));
	assert_false(pacing_next(&p, pacing_due_ns(&p) - 1, &next));
	now = pacing_due_ns(&p);
	assert_true(pacing_next(&p, now, &next));
	assert_int_equal(next.tgid, grace.tgid);
	assert_true(pacing_next(&p, now, &next));
	assert_int_equal(next.tgid, ada.tgid);
	assert_int_equal(next.started_ns, ada.started_ns);
	assert_false(pacing_next(&p, now, &next));
	assert_int_equal(pacing_due_ns(&p), 0);
	pacing_free(&p);
}

/* A day of processes: those that went long ago take no memory, and the one put off is not lost. */
static void test_forgets(void **state)
{
	struct pacing p = {0};
	struct pace_key next;
	uint64_t now = begin;

	(void)state;
	pacing_put_off(&p, grace, now);
	for (uint64_t i = 0; i < 100000; i++) {
		pacing_spend(&p, (struct pace_key){1000 + i, i}, now, MS);
		now += second / 100;
	}
	assert_true(p.forget_at < 1000);
	assert_true(pacing_next(&p, now, &next));
	assert_int_equal(next.tgid, grace.tgid);
	pacing_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_burst_and_then_a_share),
		cmocka_unit_test(test_who_asks_seldom_is_never_put_off),
		cmocka_unit_test(test_those_put_off_take_turns),
		cmocka_unit_test(test_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
