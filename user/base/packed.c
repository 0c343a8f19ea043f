/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/packed.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = sizeof(uint64_t) };

/* Counts what it does not write, if bytes is NULL. */
struct out {
	unsigned char *bytes;
	size_t size;
};

/* Seven bits a byte, the low ones first; the highest bit says that there are more. */
static void put_number(struct out *out, uint64_t number)
{
	do {
		const unsigned char more = number > 0x7f ? 0x80 : 0;

		if (out->bytes)
			out->bytes[out->size] = (unsigned char)(number & 0x7f) | more;
		out->size++;
		number >>= 7;
	} while (number);
}

static uint64_t get_number(const unsigned char **at)
{
	uint64_t number = 0;
	unsigned char byte;

	for (unsigned int shift = 0;; shift += 7) {
		byte = *(*at)++;
		number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return number;
	}
}

/* Small numbers of either sign become small ones without: 0, -1, 1, -2 are 0, 1, 2, 3. */
static uint64_t folded(uint64_t difference)
{
	return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unfolded(uint64_t number)
{
	return number >> 1 ^ (0 - (number & 1));
}

static uint64_t word_at(const char *words, size_t i)
{
	uint64_t word;

	memcpy(&word, words + i * WORD, WORD);
	return word;
}

/* The words before the first struct count as 0. */
static uint64_t word_before(const char *words, size_t i, size_t per_struct)
{
	return i < per_struct ? 0 : word_at(words, i - per_struct);
}

static void pack(struct out *out, const char *words, size_t n, size_t per_struct)
{
	size_t same = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t difference = word_at(words, i) - word_before(words, i, per_struct);

		if (!difference) {
			same++;
			continue;
		}
		put_number(out, same);
		put_number(out, folded(difference));
		same = 0;
	}
	put_number(out, same);
}

int packed_make(struct packed *packed, const void *structs, size_t n, size_t size)
{
	struct out out = {0};

	pack(&out, structs, n * (size / WORD), size / WORD);
	packed->bytes = malloc(out.size);
	if (!packed->bytes)
		return -ENOMEM;
	packed->size = out.size;
	out = (struct out){.bytes = packed->bytes};
	pack(&out, structs, n * (size / WORD), size / WORD);
	return 0;
}

void packed_read(const struct packed *packed, void *structs, size_t n, size_t size)
{
	const size_t per_struct = size / WORD, words = n * per_struct;
	const unsigned char *at = packed->bytes;
	uint64_t same = get_number(&at);
	char *to = structs;

	for (size_t i = 0; i < words; i++) {
		uint64_t word = word_before(to, i, per_struct);

		if (same) {
			same--;
		} else {
			word += unfolded(get_number(&at));
			same = get_number(&at);
		}
		memcpy(to + i * WORD, &word, WORD);
	}
}

void packed_free(struct packed *packed)
{
	free(packed->bytes);
	*packed = (struct packed){0};
}
