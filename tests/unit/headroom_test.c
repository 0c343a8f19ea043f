/* SPDX-License-Identifier: GPL-2.0-only */
/* How much is left of a limit: at looks, between them, and when that is worth a warning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/headroom.h"

#define MIB (1ull << 20)

enum { PAGE = 4096 };

static const struct headroom_warning at_90 = {.used_percent = 90};

/* The tree holds so much, at a time. */
static void hold(struct headroom *h, uint64_t time_ns, uint64_t mib)
{
	const struct wire_point point = {
		.h = {.kind = WIRE_POINT, .time_ns = time_ns},
		.tree_file = 500,
		.tree_swap = 500,
		.tree_anon = mib * 256,
		.tree_shmem = 100,
		.inherited = 100,
	};

	assert_true(headroom_record(h, &point.h, PAGE));
}

static void look(struct headroom *h, uint64_t time_ns, unsigned int index, const char *of,
		 uint64_t limit, uint64_t left)
{
	headroom_look(h, time_ns,
		      &(struct headroom_look){index, of, limit * MIB, left * MIB, left * MIB,
					      index == 1, 0});
}

static void between_looks_the_tree_tells(void **state)
{
	struct headroom h = {0};
	const struct headroom_limit *closest;
	uint64_t left;

	(void)state;
	assert_null(headroom_closest(&h));
	assert_null(headroom_now(&h, &left));
	hold(&h, 10, 50);
	look(&h, 11, 0, "cgroup /job", 64, 10); /* 4 are others' */
	hold(&h, 20, 58);
	hold(&h, 30, 52);
	closest = headroom_closest(&h);
	assert_string_equal(closest->of, "cgroup /job");
	assert_int_equal(closest->least, 2 * MIB);
	assert_int_equal(closest->least_ns, 20);
	assert_int_equal(closest->least_limit, 64 * MIB);
	assert_ptr_equal(headroom_now(&h, &left), closest);
	assert_int_equal(left, 8 * MIB);
}

/* Memory that the tree seems to hold more than once is no more than the cgroup has in use. */
static void what_is_shared_counts_as_the_cgroup_has_it(void **state)
{
	struct headroom h = {0};

	(void)state;
	hold(&h, 10, 200);
	look(&h, 11, 0, "cgroup /job", 64, 14);
	hold(&h, 20, 204);
	assert_int_equal(headroom_closest(&h)->least, 10 * MIB);
}

/* The tree went on between its last record and the look. */
static void records_from_before_a_look(void **state)
{
	struct headroom h = {0};
	uint64_t left;

	(void)state;
	hold(&h, 10, 50);
	headroom_look(&h, 10,
		      &(struct headroom_look){0, "cgroup /job", 100 * MIB, 20 * MIB, 20 * MIB,
					      false, 19});
	hold(&h, 15, 60);
	hold(&h, 18, 80); /* all that the cgroup has in use */
	assert_int_equal(headroom_closest(&h)->least, 20 * MIB);
	hold(&h, 20, 81);
	assert_int_equal(headroom_closest(&h)->least, 19 * MIB);
	assert_non_null(headroom_now(&h, &left));
	assert_int_equal(left, 19 * MIB);
}

static void records_of_another_ring_come_late(void **state)
{
	struct headroom h = {0};
	const struct wire_header exit = {.kind = WIRE_EXIT, .time_ns = 40};
	uint64_t left;

	(void)state;
	hold(&h, 30, 10);
	look(&h, 30, 0, "machine", 100, 50);
	hold(&h, 20, 40);
	assert_int_equal(headroom_closest(&h)->least, 20 * MIB);
	assert_int_equal(headroom_closest(&h)->least_ns, 20);
	assert_non_null(headroom_now(&h, &left));
	assert_int_equal(left, 50 * MIB);
	assert_false(headroom_record(&h, &exit, PAGE));
}

/* A later record of the other ring comes first: what was held at the look is told all the same. */
static void records_from_before_a_look_come_late(void **state)
{
	struct headroom h = {0};
	uint64_t left;

	(void)state;
	hold(&h, 10, 50);
	headroom_look(&h, 10,
		      &(struct headroom_look){0, "cgroup /job", 100 * MIB, 20 * MIB, 20 * MIB,
					      false, 19});
	hold(&h, 22, 82);
	hold(&h, 18, 80);
	hold(&h, 15, 60);
	assert_non_null(headroom_now(&h, &left));
	assert_int_equal(left, 18 * MIB);
	assert_int_equal(headroom_closest(&h)->least, 18 * MIB);
	hold(&h, 30, 85);
	assert_int_equal(headroom_closest(&h)->least, 15 * MIB);
}

/* Of an address space only looks tell, and the kernel remembers the most. */
static void an_address_space(void **state)
{
	struct headroom h = {0};
	const struct headroom_look as = {1, "RLIMIT_AS", 100 * MIB, 40 * MIB, 15 * MIB, true, 0};

	(void)state;
	headroom_look(&h, 10, &as);
	hold(&h, 20, 90);
	assert_int_equal(headroom_closest(&h)->least, 15 * MIB);
	assert_null(headroom_warns(&h, &at_90));
	look(&h, 30, 1, "RLIMIT_AS", 100, 10);
	assert_string_equal(headroom_warns(&h, &at_90)->of, "RLIMIT_AS");
	assert_null(headroom_warns(&h, &at_90));
}

static void each_limit_is_warned_of_once(void **state)
{
	struct headroom h = {0};

	(void)state;
	look(&h, 1, 0, "cgroup /job", 100, 100);
	look(&h, 1, 15, "machine", 1000, 950);
	hold(&h, 10, 89);
	assert_null(headroom_warns(&h, &at_90));
	hold(&h, 20, 90);
	hold(&h, 30, 1); /* it came to it all the same */
	assert_string_equal(headroom_warns(&h, &at_90)->of, "cgroup /job");
	hold(&h, 40, 99);
	assert_null(headroom_warns(&h, &at_90));
	hold(&h, 50, 850);
	assert_string_equal(headroom_warns(&h, &at_90)->of, "machine");
	assert_null(headroom_warns(&h, &at_90));
}

/* Another process fills the machine: it is not the tree's business before it holds as much as is
 * left. */
static void others_fill_it(void **state)
{
	struct headroom h = {0};

	(void)state;
	hold(&h, 10, 20);
	look(&h, 10, 15, "machine", 1000, 50);
	assert_null(headroom_warns(&h, &at_90));
	hold(&h, 20, 34);
	assert_null(headroom_warns(&h, &at_90));
	hold(&h, 30, 35); /* and 35 are left */
	assert_non_null(headroom_warns(&h, &at_90));
}

static void an_amount_left(void **state)
{
	const struct headroom_warning at = {.left = 8 * MIB};
	struct headroom h = {0};

	(void)state;
	look(&h, 1, 0, "cgroup /job", 100, 100);
	hold(&h, 10, 92);
	assert_null(headroom_warns(&h, &at));
	hold(&h, 20, 93);
	assert_non_null(headroom_warns(&h, &at));
}

/* From outside, while the tree does nothing. */
static void a_limit_is_lowered(void **state)
{
	struct headroom h = {0};

	(void)state;
	hold(&h, 10, 50);
	look(&h, 11, 0, "cgroup /job", 100, 50);
	look(&h, 12, 0, "cgroup /job", 54, 4);
	assert_string_equal(headroom_warns(&h, &at_90)->of, "cgroup /job");
	assert_int_equal(headroom_closest(&h)->least_limit, 54 * MIB);
}

static void the_tree_is_moved(void **state)
{
	struct headroom h = {0};

	(void)state;
	look(&h, 1, 0, "cgroup /a", 100, 1);
	look(&h, 2, 0, "cgroup /b\xff", 100, 80);
	assert_string_equal(headroom_closest(&h)->of, "cgroup /b\xef\xbf\xbd");
	assert_int_equal(headroom_closest(&h)->least, 80 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_looks_the_tree_tells),
		cmocka_unit_test(what_is_shared_counts_as_the_cgroup_has_it),
		cmocka_unit_test(records_from_before_a_look),
		cmocka_unit_test(records_from_before_a_look_come_late),
		cmocka_unit_test(records_of_another_ring_come_late),
		cmocka_unit_test(an_address_space),
		cmocka_unit_test(each_limit_is_warned_of_once),
		cmocka_unit_test(others_fill_it),
		cmocka_unit_test(an_amount_left),
		cmocka_unit_test(a_limit_is_lowered),
		cmocka_unit_test(the_tree_is_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
