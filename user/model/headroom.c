/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/headroom.h"

#include <string.h>

#include "base/amounts.h"
#include "base/text.h"

static uint64_t left_of(const struct headroom *h, const struct headroom_limit *limit)
{
	const int64_t used = limit->others + (int64_t)h->held;

	if (limit->now.of_process)
		return limit->now.left;
	return used > 0 ? since((uint64_t)used, limit->now.limit) : limit->now.limit;
}

static void note_least(const struct headroom *h, struct headroom_limit *limit, uint64_t time_ns,
		       uint64_t left)
{
	if (limit->least_limit && left >= limit->least)
		return;
	limit->least = left;
	limit->least_ns = time_ns;
	limit->least_limit = limit->now.limit;
	limit->least_held = h->held;
}

static void note_others(const struct headroom *h, struct headroom_limit *limit)
{
	const uint64_t used = since(limit->now.left, limit->now.limit);

	limit->others = (int64_t)used - (int64_t)h->held;
}

static uint64_t pages_held(uint64_t anon, uint64_t shmem, uint64_t inherited)
{
	return since(inherited, anon + shmem);
}

bool headroom_record(struct headroom *h, const struct wire_header *record, uint64_t page_size)
{
	uint64_t pages;

	if (record->kind == WIRE_POINT) {
		const struct wire_point *point = (const struct wire_point *)record;

		pages = pages_held(point->tree_anon, point->tree_shmem, point->inherited);
	} else if (record->kind == WIRE_CHECKPOINT) {
		const struct wire_checkpoint *cp = (const struct wire_checkpoint *)record;

		pages = pages_held(cp->tree.memory.anon, cp->tree.memory.shmem, cp->inherited);
	} else {
		return false;
	}
	if (record->time_ns < h->held_ns) /* of another ring */
		return true;
	h->held = pages * page_size;
	h->held_ns = record->time_ns;
	for (size_t i = 0; i < HEADROOM_LIMITS; i++) {
		struct headroom_limit *limit = &h->limits[i];

		/* What the tree held when the limit was looked at is known by now. */
		if (record->time_ns <= limit->now.time_ns)
			note_others(h, limit);
		else if (limit->now.limit && !limit->now.of_process)
			note_least(h, limit, record->time_ns, left_of(h, limit));
	}
	return true;
}

void headroom_look(struct headroom *h, uint64_t time_ns, const struct headroom_look *look)
{
	struct headroom_limit *limit = &h->limits[look->index % HEADROOM_LIMITS];
	char of[HEADROOM_OF_MAX];

	text_repair(of, sizeof(of), look->of, strlen(look->of), NULL);
	if (strcmp(of, limit->of) != 0) { /* the first, or the tree has moved to another cgroup */
		*limit = (struct headroom_limit){0};
		memcpy(limit->of, of, sizeof(of));
	}
	limit->now = *look;
	limit->now.of = limit->of;
	note_others(h, limit);
	note_least(h, limit, time_ns, look->least);
}

static bool is_beyond(const struct headroom_limit *limit, const struct headroom_warning *at)
{
	const double used = (double)since(limit->least, limit->least_limit);

	if (!limit->least_limit || (!limit->now.of_process && limit->least_held < limit->least))
		return false;
	return (at->used_percent > 0 &&
		used * 100 >= at->used_percent * (double)limit->least_limit) ||
	       limit->least < at->left;
}

const struct headroom_limit *headroom_warns(struct headroom *h, const struct headroom_warning *at)
{
	for (size_t i = 0; i < HEADROOM_LIMITS; i++) {
		struct headroom_limit *limit = &h->limits[i];

		if (limit->warned || !is_beyond(limit, at))
			continue;
		limit->warned = true;
		return limit;
	}
	return NULL;
}

const struct headroom_limit *headroom_closest(const struct headroom *h)
{
	const struct headroom_limit *closest = NULL;

	for (size_t i = 0; i < HEADROOM_LIMITS; i++) {
		const struct headroom_limit *limit = &h->limits[i];

		if (limit->least_limit && (!closest || limit->least < closest->least))
			closest = limit;
	}
	return closest;
}

const struct headroom_limit *headroom_now(const struct headroom *h, uint64_t *left)
{
	const struct headroom_limit *nearest = NULL;

	for (size_t i = 0; i < HEADROOM_LIMITS; i++) {
		const struct headroom_limit *limit = &h->limits[i];

		if (!limit->now.limit || (nearest && left_of(h, limit) >= *left))
			continue;
		nearest = limit;
		*left = left_of(h, limit);
	}
	return nearest;
}
