/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/limits.h"

#include "capture/capture.h"
#include "capture/wake.h"
#include "kernel/file_system.h"
#include "kernel/overcommit.h"

void limits_look(struct headroom *h, struct memory_limits *limits, uint32_t tgid, bool is_apart)
{
	struct memory_room rooms[MEMORY_ROOMS];
	const size_t n = memory_limits_read(limits, tgid, rooms);
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	/* It has been so since memory moved last. */
	for (size_t i = 0; i < n; i++)
		headroom_look(
			h, h->held_ns,
			&(struct headroom_look){.index = rooms[i].index,
						.of = rooms[i].of,
						.limit = rooms[i].limit,
						.left = rooms[i].left,
						.least = rooms[i].least,
						.of_process = rooms[i].of_process ||
							      (is_apart && rooms[i].of_cgroup),
						.time_ns = now_ns});
}

bool limits_disk(void *context, const struct wire_written *written, bool as_root,
		 struct profile_disk *disk)
{
	struct capture *c = context;
	struct file_system_room room;

	if (!file_system_of(written, as_root, &c->disks, disk->mount, sizeof(disk->mount), &room))
		return false;
	disk->size = room.size;
	disk->left = room.left;
	disk->user = (struct profile_quota){room.user.limit, room.user.used};
	disk->group = (struct profile_quota){room.group.limit, room.group.used};
	return true;
}

bool limits_committed(void *context, const struct wire_header *ended, uint64_t private_bytes,
		      struct profile_quota *all)
{
	const struct capture *c = context;
	struct overcommit found;

	/* An audit waits for nobody's process. */
	if (!overcommit_read((pid_t)ended->tgid, ended->started_ns, private_bytes,
			     !c->options->engine.audit, &found))
		return false;
	*all = (struct profile_quota){.limit = found.limit, .used = found.committed};
	return true;
}
