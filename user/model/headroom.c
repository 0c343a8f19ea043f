/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/headroom.h"

#include <string.h>

#include "base/amounts.h"
#include "base/text.h"

static uint64_t left_of(const struct headroom_limit *limit, uint64_t held)
{
	const int64_t used = limit->others + (int64_t)held;

	if (limit->now.of_process)
		return limit->now.left;
	return used > 0 ? since((uint64_t)used, limit->now.limit) : limit->now.limit;
}

static void note_least(struct headroom_limit *limit, uint64_t time_ns, uint64_t left, uint64_t held)
{
	if (limit->least_limit && left >= limit->least)
		return;
	limit->least = left;
	limit->least_ns = time_ns;
	limit->least_limit = limit->now.limit;
	limit->least_held = held;
}

/* All records that are there have been taken, so what others use is known. */
static void settle(struct headroom_limit *limit)
{
	if (limit->most_ns)
		note_least(limit, limit->most_ns, left_of(limit, limit->most), limit->most);
	limit->most = limit->most_ns = 0;
}

/* held: by the tree, as of the last record before the look. */
static void note_others(struct headroom_limit *limit, uint64_t held, uint64_t held_ns)
{
	const uint64_t used = since(limit->now.left, limit->now.limit);

	limit->others = (int64_t)used - (int64_t)held;
	limit->others_ns = held_ns;
}

static void note(struct headroom_limit *limit, uint64_t held, uint64_t time_ns)
{
	if (!limit->now.limit || limit->now.of_process)
		return;
	if (time_ns <= limit->now.time_ns && time_ns >= limit->others_ns)
		note_others(limit, held, time_ns);
	if (limit->most_ns && held <= limit->most)
		return;
	limit->most = held;
	limit->most_ns = time_ns;
}

static uint64_t pages_held(uint64_t anon, uint64_t shmem, uint64_t inherited)
{
	return since(inherited, anon + shmem);
}

bool headroom_record(struct headroom *h, const struct wire_header *record, uint64_t page_size)
{
	const uint64_t time_ns = record->time_ns;
	uint64_t held;

	if (record->kind == WIRE_POINT) {
		const struct wire_point *point = (const struct wire_point *)record;

		held = pages_held(point->tree_anon, point->tree_shmem, point->inherited);
	} else if (record->kind == WIRE_CHECKPOINT) {
		const struct wire_checkpoint *cp = (const struct wire_checkpoint *)record;

		held = pages_held(cp->tree.memory.anon, cp->tree.memory.shmem, cp->inherited);
	} else {
		return false;
	}
	held *= page_size;
	if (time_ns >= h->held_ns) {
		h->held = held;
		h->held_ns = time_ns;
	}
	for (size_t i = 0; i < HEADROOM_LIMITS; i++)
		note(&h->limits[i], held, time_ns);
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
	settle(limit);
	limit->now = *look;
	limit->now.of = limit->of;
	note_others(limit, h->held, h->held_ns);
	note_least(limit, time_ns, look->least, h->held);
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

		settle(limit);
		if (limit->warned || !is_beyond(limit, at))
			continue;
		limit->warned = true;
		return limit;
	}
	return NULL;
}

const struct headroom_limit *headroom_closest(struct headroom *h)
{
	const struct headroom_limit *closest = NULL;

	for (size_t i = 0; i < HEADROOM_LIMITS; i++) {
		struct headroom_limit *limit = &h->limits[i];

		settle(limit);
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

		if (!limit->now.limit || (nearest && left_of(limit, h->held) >= *left))
			continue;
		nearest = limit;
		*left = left_of(limit, h->held);
	}
	return nearest;
}
