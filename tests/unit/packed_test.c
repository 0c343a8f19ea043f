/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/packed.h"

struct item {
	uint64_t time_ns;
	const char *name;
	uint64_t zeros[20];
	int64_t change;
	uint32_t low, high;
};

static void assert_comes_back(const struct item *items, size_t n, size_t most)
{
	struct item *read = calloc(n + 1, sizeof(*read));
	struct packed packed = {0};

	assert_non_null(read);
	assert_int_equal(packed_make(&packed, items, n, sizeof(*items)), 0);
	assert_true(packed.size <= most);
	packed_read(&packed, read, n, sizeof(*items));
	if (n)
		assert_memory_equal(read, items, n * sizeof(*items));
	assert_int_equal(read[n].time_ns, 0);
	packed_free(&packed);
	assert_null(packed.bytes);
	free(read);
}

static void alike(void **state)
{
	struct item items[1000];

	(void)state;
	memset(items, 0, sizeof(items));
	for (size_t i = 0; i < 1000; i++) {
		items[i].time_ns = 1000000000000 + i * 1000000;
		items[i].name = "of all";
		items[i].change = i % 2 ? -3 : 3;
	}
	assert_comes_back(items, 1000, 1000 * 8);
}

static void any_words(void **state)
{
	struct item items[4];

	(void)state;
	memset(items, 0xff, sizeof(items));
	memset(&items[1], 0, sizeof(items[1]));
	items[2].time_ns = (uint64_t)1 << 63;
	items[3].change = INT64_MIN;
	items[3].high = 1;
	assert_comes_back(items, 4, 2 * sizeof(items));
	for (size_t i = 0; i < sizeof(items); i++)
		((unsigned char *)items)[i] = (unsigned char)(i * 167 + (i >> 3));
	assert_comes_back(items, 4, 2 * sizeof(items));
}

static void few(void **state)
{
	struct item item;

	(void)state;
	memset(&item, 0, sizeof(item));
	assert_comes_back(&item, 1, 2);
	item.high = 7; /* the last word */
	assert_comes_back(&item, 1, 8);
	assert_comes_back(NULL, 0, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alike),
		cmocka_unit_test(any_words),
		cmocka_unit_test(few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
