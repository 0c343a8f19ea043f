/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

char *calls_begin(struct calls *c, const struct call_place *at)
{
	struct call *list;

	if (c->n == CALLS_MAX)
		return NULL;
	list = array_reserve(c->list, c->n, &c->room, sizeof(*list));
	if (!list)
		return NULL;
	c->list = list;
	list[c->n].place = *at;
	return list[c->n++].name;
}

static void take(struct calls *c, size_t i, char name[MARK_NAME_MAX])
{
	memcpy(name, c->list[i].name, MARK_NAME_MAX);
	memmove(&c->list[i], &c->list[i + 1], (c->n - i - 1) * sizeof(*c->list));
	c->n--;
}

/* A function that another calls last has its stack: both are calls there. */
static bool is_left(const struct call_place *call, const struct call_place *at)
{
	if (call->tid != at->tid || call->stack > at->stack)
		return false;
	return call->stack == at->stack ? call->item == at->item
					: at->stack - call->stack < CALLS_STACK;
}

bool calls_take_left(struct calls *c, const struct call_place *at, char name[MARK_NAME_MAX])
{
	for (size_t i = c->n; i > 0; i--) {
		if (!is_left(&c->list[i - 1].place, at))
			continue;
		take(c, i - 1, name);
		return true;
	}
	return false;
}

/* It may have begun in another thread: a coroutine goes on in whichever is free. */
static size_t find(const struct calls *c, const struct call_place *at)
{
	size_t i = c->n;

	while (i > 0 &&
	       (c->list[i - 1].place.stack != at->stack || c->list[i - 1].place.item != at->item))
		i--;
	return i;
}

static bool is_within(const struct call_place *inner, const struct call_place *outer)
{
	return inner->tid == outer->tid && inner->stack <= outer->stack &&
	       outer->stack - inner->stack < CALLS_STACK;
}

bool calls_take(struct calls *c, const struct call_place *at, char name[MARK_NAME_MAX], bool *last)
{
	const size_t itself = find(c, at);
	size_t i = c->n;

	if (!itself)
		return false;
	while (i > itself && !is_within(&c->list[i - 1].place, &c->list[itself - 1].place))
		i--;
	*last = i == itself;
	take(c, i - 1, name);
	return true;
}

bool calls_take_at(struct calls *c, uint32_t site, char name[MARK_NAME_MAX])
{
	size_t i = c->n;

	while (i > 0 && c->list[i - 1].place.site != site)
		i--;
	if (i > 0)
		take(c, i - 1, name);
	return i > 0;
}

void calls_free(struct calls *c)
{
	free(c->list);
	*c = (struct calls){0};
}
