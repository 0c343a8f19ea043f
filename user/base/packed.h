/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * packed.h - an array of structs in few bytes, for as long as nobody looks at it.
 *
 * Structs that lie side by side are alike: numbers that have grown a little, pointers that are
 * equal, words that are 0. So of each word of 8 bytes only its difference to the same word of the
 * struct before is kept, in as many bytes as it needs, and words without one are counted.
 *
 * Example: structs of three words, {1000, 5, 0} and {1003, 5, 0}. Of the second is kept: 0 words
 * without a difference, a difference of 3, 2 words without a difference.
 */
#ifndef QPROF_PACKED_H
#define QPROF_PACKED_H

#include <stddef.h>

struct packed {
	unsigned char *bytes; /* NULL: nothing is packed */
	size_t size;	      /* of bytes */
};

/* Packs n structs of size bytes each, a multiple of 8. Returns 0 or -ENOMEM. */
int packed_make(struct packed *packed, const void *structs, size_t n, size_t size);
/* Writes the n structs as they were. */
void packed_read(const struct packed *packed, void *structs, size_t n, size_t size);
void packed_free(struct packed *packed);

#endif
