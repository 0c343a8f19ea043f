/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * begun.h - the phases that items of recipes have begun in a process and not ended yet: they end
 * with the program that it runs.
 *
 * An end means what it means to the profile (model/pairing.h): the phase of that name that its
 * thread began last; if the thread has none, the one that any thread began last.
 *
 * Pure.
 */
#ifndef QPROF_BEGUN_H
#define QPROF_BEGUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipes/teller.h"

enum { BEGUN_MAX = 4096 /* at a time; later ones are left to the end of the run */ };

struct begun_phase {
	uint32_t tid;
	char name[MARK_NAME_MAX];
};

/* All zero: none. */
struct begun {
	struct begun_phase *list; /* the youngest last */
	size_t n, room;
};

void begun_add(struct begun *b, uint32_t tid, const char *name);
void begun_end(struct begun *b, uint32_t tid, const char *name);
/* Takes out the youngest. Returns false if there is none. */
bool begun_take(struct begun *b, struct begun_phase *phase);
void begun_free(struct begun *b);

#endif
