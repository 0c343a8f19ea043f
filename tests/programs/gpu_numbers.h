/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_numbers.h - numbers that stand in for memory, in the libraries without a GPU: the one that
 * came back last is given out next, as addresses of drivers are.
 */
#ifndef QPROF_GPU_NUMBERS_H
#define QPROF_GPU_NUMBERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SLOTS = 1 << 20 };

struct numbers {
	uint32_t next[SLOTS];
	uint8_t used[SLOTS]; /* how it was marked; 0: it is free */
	uint32_t first, fresh;
};

static pthread_mutex_t numbers_lock = PTHREAD_MUTEX_INITIALIZER;

/* A multiple of 4096. mark is not 0. */
static inline uint64_t numbers_take(struct numbers *n, uint8_t mark)
{
	uint32_t slot;

	pthread_mutex_lock(&numbers_lock);
	slot = n->first;
	if (slot)
		n->first = n->next[slot];
	else
		slot = ++n->fresh;
	n->used[slot] = mark;
	pthread_mutex_unlock(&numbers_lock);
	return (uint64_t)slot * 4096;
}

static inline void numbers_free_slot(struct numbers *n, uint32_t slot)
{
	n->used[slot] = 0;
	n->next[slot] = n->first;
	n->first = slot;
}

/* Returns false if nobody has it. */
static inline bool numbers_give_back(struct numbers *n, uint64_t at)
{
	bool used = at % 4096 == 0 && at / 4096 < SLOTS;

	pthread_mutex_lock(&numbers_lock);
	used = used && n->used[at / 4096];
	if (used)
		numbers_free_slot(n, (uint32_t)(at / 4096));
	pthread_mutex_unlock(&numbers_lock);
	return used;
}

static inline void numbers_give_back_all(struct numbers *n, uint8_t mark)
{
	pthread_mutex_lock(&numbers_lock);
	for (uint32_t slot = 1; slot <= n->fresh; slot++)
		if (n->used[slot] == mark)
			numbers_free_slot(n, slot);
	pthread_mutex_unlock(&numbers_lock);
}

#endif
