/* SPDX-License-Identifier: GPL-2.0-only */
/* Keys that somebody chose to be in one bucket are spread all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"

enum { KEYS = 1000, BUCKET_BITS = 14, CHAIN = 30 };

/* Of the reference implementation: key 00 01 .. 0f, bytes 00 01 02 ... */
static void test_it_is_siphash(void **state)
{
	static const struct {
		size_t size;
		uint64_t hash;
	} known[] = {
		{0, 0x726fdb47dd0e0e31},
		{1, 0x74f839c593dc67fd},
		{8, 0x93f5f5799a932462},
		{15, 0xa129ca6149be45e5},
	};
	const struct hash_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
	unsigned char bytes[16];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_int_equal(hash_siphash(&key, bytes, known[i].size), known[i].hash);
}

struct element {
	uint32_t key;
	UT_hash_handle hh;
};

/* The next one that the hash function of uthash, which all know, puts into bucket 0. */
static uint32_t chosen_after(uint32_t key)
{
	unsigned int hash;

	do {
		key++;
		HASH_JEN(&key, sizeof(key), hash);
	} while (hash & ((1u << BUCKET_BITS) - 1));
	return key;
}

static void test_keys_that_were_chosen(void **state)
{
	struct element *elements = calloc(KEYS, sizeof(*elements)), *first = NULL, *found;
	unsigned int longest = 0;
	uint32_t key = 0;

	(void)state;
	assert_non_null(elements);
	for (size_t i = 0; i < KEYS; i++) {
		key = elements[i].key = chosen_after(key);
		HASH_ADD(hh, first, key, sizeof(key), &elements[i]);
	}
	for (unsigned int i = 0; i < first->hh.tbl->num_buckets; i++)
		if (first->hh.tbl->buckets[i].count > longest)
			longest = first->hh.tbl->buckets[i].count;
	assert_in_range(longest, 1, CHAIN);
	HASH_FIND(hh, first, &key, sizeof(key), found);
	assert_ptr_equal(found, &elements[KEYS - 1]);
	HASH_CLEAR(hh, first);
	free(elements);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_siphash),
		cmocka_unit_test(test_keys_that_were_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
