/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * calls.h - the calls of functions that a process is in, each the phase of its item.
 *
 * A call and its return have the same end of the stack, which grows downwards. So a call is over
 * without a return (longjmp, an exception) once its thread is met with less on the same stack.
 * Example, of one thread: calls at 900 and 500, then one at 700: that at 500 is over.
 *
 * Pure.
 */
#ifndef QPROF_CALLS_H
#define QPROF_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipes/teller.h"

enum {
	CALLS_MAX = 4096, /* at a time; no item begins more */
	CALLS_STACK =
		8 << 20, /* further away is another stack: a signal handler's, a coroutine's */
};

/* Where a thread is met: in a call of an item, or at its return. */
struct call_place {
	uint32_t tid, item;
	uint64_t stack;
	uint32_t site; /* where it began; of no meaning at its return */
};

struct call {
	struct call_place place;
	char name[MARK_NAME_MAX]; /* of its phase */
};

/* All zero: none. */
struct calls {
	struct call *list; /* the youngest last */
	size_t n, room;
};

/* Returns room for the name of a call that begins; NULL: there are too many. */
char *calls_begin(struct calls *c, const struct call_place *at);
/* Takes out the youngest call that is over, as its thread is there. Returns false if none is. */
bool calls_take_left(struct calls *c, const struct call_place *at, char name[MARK_NAME_MAX]);
/*
 * Takes out the youngest call that is over as that call returns: one that it has called and that
 * was left, or that returns with it, as a function that it calls last; at the end itself, and *last
 * is set. Returns false if the call is not known.
 */
bool calls_take(struct calls *c, const struct call_place *at, char name[MARK_NAME_MAX], bool *last);
/* Takes out the youngest call that began at a site. Returns false if there is none. */
bool calls_take_at(struct calls *c, uint32_t site, char name[MARK_NAME_MAX]);
void calls_free(struct calls *c);

#endif
