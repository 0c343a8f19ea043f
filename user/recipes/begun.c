/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/begun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct begun *b)
{
	const size_t room = b->room ? 2 * b->room : 4;
	struct begun_phase *list;

	if (b->n < b->room)
		return true;
	if (b->n == BEGUN_MAX)
		return false;
	list = realloc(b->list, room * sizeof(*list));
	if (!list)
		return false;
	b->list = list;
	b->room = room;
	return true;
}

void begun_add(struct begun *b, uint32_t tid, const char *name)
{
	if (!make_room(b))
		return;
	b->list[b->n].tid = tid;
	snprintf(b->list[b->n++].name, MARK_NAME_MAX, "%s", name);
}

/* Returns how many phases are left with the one that is meant as the last; 0: there is none. */
static size_t find(const struct begun *b, uint32_t tid, const char *name)
{
	size_t of_process = 0;

	for (size_t i = b->n; i; i--) {
		const struct begun_phase *phase = &b->list[i - 1];

		if (strcmp(phase->name, name) != 0)
			continue;
		if (phase->tid == tid)
			return i;
		of_process = of_process ? of_process : i;
	}
	return of_process;
}

void begun_end(struct begun *b, uint32_t tid, const char *name)
{
	const size_t i = find(b, tid, name);

	if (!i)
		return;
	memmove(&b->list[i - 1], &b->list[i], (b->n - i) * sizeof(*b->list));
	b->n--;
}

bool begun_take(struct begun *b, struct begun_phase *phase)
{
	if (!b->n)
		return false;
	*phase = b->list[--b->n];
	return true;
}

void begun_free(struct begun *b)
{
	free(b->list);
	*b = (struct begun){0};
}
