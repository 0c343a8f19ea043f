/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Tests with AddressSanitizer see a read past the last element, though there is room for more. */
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size)   ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

enum { CHUNK = 65536 }; /* of texts */

struct block {
	struct block *prev, *next;
	size_t size; /* of bytes */
	max_align_t bytes[];
};

struct arena {
	struct block *blocks;
	char *at; /* the free bytes of the newest chunk */
	size_t left;
};

struct arena *arena_new(void)
{
	return calloc(1, sizeof(struct arena));
}

void arena_free(struct arena *a)
{
	struct block *block = a ? a->blocks : NULL;

	while (block) {
		struct block *next = block->next;

		free(block);
		block = next;
	}
	free(a);
}

static void *add_block(struct arena *a, size_t size)
{
	struct block *block = malloc(sizeof(*block) + size);

	if (!block)
		return NULL;
	block->size = size;
	DL_APPEND(a->blocks, block);
	return block->bytes;
}

char *arena_text(struct arena *a, const char *text, size_t len)
{
	char *copy;

	if (len >= a->left) {
		const size_t size = len + 1 > CHUNK ? len + 1 : CHUNK;

		copy = add_block(a, size);
		if (!copy)
			return NULL;
		a->at = copy;
		a->left = size;
	}
	copy = a->at;
	memcpy(copy, text, len);
	copy[len] = '\0';
	a->at += len + 1;
	a->left -= len + 1;
	return copy;
}

static struct block *block_of(void *items)
{
	return (struct block *)((char *)items - offsetof(struct block, bytes));
}

static void *resize(struct arena *a, void *items, size_t size)
{
	struct block *old = block_of(items), *block;

	DL_DELETE(a->blocks, old);
	block = realloc(old, sizeof(*old) + size);
	if (!block) {
		DL_APPEND(a->blocks, old);
		return NULL;
	}
	block->size = size;
	DL_APPEND(a->blocks, block);
	return block->bytes;
}

void *arena_grow(struct arena *a, void *items, size_t n, size_t size)
{
	enum { FIRST = 4 };
	const size_t used = (n + 1) * size;
	const bool has_room = items && used <= block_of(items)->size;

	if (!items)
		items = add_block(a, FIRST * size);
	else if (!has_room)
		items = resize(a, items, 2 * n * size);
	if (!items)
		return NULL;
	if (has_room)
		ASAN_UNPOISON_MEMORY_REGION((char *)items + n * size, size);
	else
		ASAN_POISON_MEMORY_REGION((char *)items + used, block_of(items)->size - used);
	memset((char *)items + n * size, 0, size);
	return items;
}
