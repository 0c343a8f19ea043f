/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * turns.h - whose turn it is to be served: nobody takes all connections. Callers wait for a place
 * in the order of who has fewest; where all places are taken, whoever has most gives one up for a
 * caller who would have fewer with it.
 *
 * Example with 4 places: A has 4 and another 2 that wait. B calls: A's oldest connection ends, and
 * B has its place. B calls again: A's oldest of the 3 ends. A third call of B's waits: with it B
 * would have 3, and A has 2.
 */
#ifndef QPROF_TURNS_H
#define QPROF_TURNS_H

#include "audit/metrics/peer.h"

enum {
	TURNS_PLACES = 16,
	TURNS_WAITING = 32,
	TURNS_ALL = TURNS_PLACES + TURNS_WAITING,
	TURNS_CUT_SHORT = 16, /* callers whose lost calls are counted one by one */
};

struct turn {
	int fd; /* -1: nobody's */
	bool served, ends;
	uint64_t number; /* counts up with the calls */
	uint64_t until_ns;
	struct peer peer;
};

struct turns {
	struct turn all[TURNS_ALL];
	uint64_t calls;
	struct {
		struct peer peer;
		uint64_t calls; /* 0: from here on there is none */
	} cut_short[TURNS_CUT_SHORT];
	uint64_t n_cut_short; /* of all callers */
};

void turns_begin(struct turns *t);
/* A caller comes. Returns -1, or the descriptor of a call that has to go, perhaps this one. */
int turns_come(struct turns *t, int fd, const struct peer *peer);
/*
 * Returns the call that is to be served now, as served; or NULL. Sets *ends to the call that has to
 * end before another can be served, or to NULL.
 */
struct turn *turns_next(struct turns *t, struct turn **ends);
/* The call has ended. */
void turns_end(struct turn *turn);

#endif
