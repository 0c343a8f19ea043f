/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/limits.h"

#include "capture/wake.h"

void limits_look(struct headroom *h, struct memory_limits *limits, uint32_t tgid)
{
	struct memory_room rooms[MEMORY_ROOMS];
	const size_t n = memory_limits_read(limits, tgid, rooms);
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	/* It has been so since memory moved last. */
	for (size_t i = 0; i < n; i++)
		headroom_look(h, h->held_ns,
			      &(struct headroom_look){.index = rooms[i].index,
						      .of = rooms[i].of,
						      .limit = rooms[i].limit,
						      .left = rooms[i].left,
						      .least = rooms[i].least,
						      .of_process = rooms[i].of_process,
						      .time_ns = now_ns});
}
