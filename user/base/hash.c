/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/hash.h"

#include <endian.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t word, unsigned int bits)
{
	return word << bits | word >> (64 - bits);
}

static void rounds(struct state *s, unsigned int n)
{
	while (n--) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotate(s->v1, 13) ^ s->v0;
		s->v3 = rotate(s->v3, 16) ^ s->v2;
		s->v0 = rotate(s->v0, 32) + s->v3;
		s->v2 += s->v1;
		s->v3 = rotate(s->v3, 21) ^ s->v0;
		s->v1 = rotate(s->v1, 17) ^ s->v2;
		s->v2 = rotate(s->v2, 32);
	}
}

static void add(struct state *s, uint64_t word)
{
	s->v3 ^= word;
	rounds(s, 2);
	s->v0 ^= word;
}

uint64_t hash_siphash(const struct hash_key *key, const void *bytes, size_t size)
{
	struct state s = {
		key->words[0] ^ 0x736f6d6570736575,
		key->words[1] ^ 0x646f72616e646f6d,
		key->words[0] ^ 0x6c7967656e657261,
		key->words[1] ^ 0x7465646279746573,
	};
	const size_t left = size % sizeof(uint64_t);
	const unsigned char *at = bytes, *end = at + size - left;
	uint64_t word;

	for (; at < end; at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		add(&s, le64toh(word));
	}
	word = 0;
	memcpy(&word, at, left);
	add(&s, le64toh(word) | (uint64_t)size << 56);
	s.v2 ^= 0xff;
	rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static struct hash_key chosen;

/* Before main(), as threads have tables, too. A kernel that has no random bytes yet has just
 * booted. */
static void __attribute__((constructor)) choose_key(void)
{
	if (getrandom(&chosen, sizeof(chosen), GRND_NONBLOCK) == sizeof(chosen))
		return;
	chosen.words[0] = clock_ns(CLOCK_MONOTONIC);
	chosen.words[1] = (uintptr_t)&chosen ^ clock_ns(CLOCK_REALTIME);
}

uint32_t hash_of(const void *bytes, size_t size)
{
	return (uint32_t)hash_siphash(&chosen, bytes, size);
}
