/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/limits.h"

#include "capture/capture.h"
#include "capture/wake.h"
#include "kernel/file_system.h"
#include "kernel/overcommit.h"

enum {
	REST = 50, /* a look that takes 1 ms has none follow for 50 ms */
	PROGRAMS_AT_ONCE = 64,
	PROGRAMS_REST_NS = 100000000, /* between later ones */
};

bool limits_look(struct headroom *h, struct memory_limits *limits, uint32_t tgid, bool is_apart)
{
	struct memory_room rooms[MEMORY_ROOMS];
	const size_t n = memory_limits_read(limits, tgid, rooms);
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t least = UINT64_MAX, machine = 0;
	bool of_process = false;

	for (size_t i = 0; i < n; i++) {
		of_process |= rooms[i].of_process;
		if (rooms[i].of_cgroup)
			least = rooms[i].limit < least ? rooms[i].limit : least;
		else if (!rooms[i].of_process)
			machine = rooms[i].limit;
	}
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
	return of_process || least < machine;
}

bool limits_may_differ(struct limits_programs *p, bool is_first, uint64_t now_ns)
{
	if (!is_first && p->n >= PROGRAMS_AT_ONCE && now_ns < p->due_ns)
		return false;
	p->n++;
	p->due_ns = now_ns + PROGRAMS_REST_NS;
	return true;
}

/* ---- CPUs --------------------------------------------------------------------------------------
 */

void limits_of_cpus_begin(struct limits_of_cpus *l, uint32_t tgid)
{
	l->now.pid = tgid;
	cpu_limit_look(&l->now);
}

static void look_at_cpus(struct limits_of_cpus *l, uint64_t now_ns)
{
	cpu_limit_look(&l->now);
	l->due_ns = now_ns + REST * (clock_ns(CLOCK_MONOTONIC) - now_ns);
}

void limits_of_cpus_row(struct limits_of_cpus *l, struct profile *profile)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (now_ns < l->due_ns)
		return;
	look_at_cpus(l, now_ns);
	if (l->now.quota_ns)
		profile_throttled(profile, l->now.throttled_ns);
}

void limits_of_cpus_program(struct limits_of_cpus *l, uint32_t tgid)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (limits_may_differ(&l->programs, tgid == l->now.pid, now_ns))
		look_at_cpus(l, now_ns);
}

void limits_of_cpus_note(struct limits_of_cpus *l, struct run_cpu_limit *info)
{
	const struct cpu_limit *limit = &l->now;

	cpu_limit_look(&l->now);
	*info = (struct run_cpu_limit){.cpus = limit->cpus,
				       .quota_ns = limit->quota_ns,
				       .period_ns = limit->period_ns,
				       .of = limit->of,
				       .throttled_ns = limit->throttled_ns,
				       .throttled_periods = limit->throttled_periods};
}

/* ---- For models --------------------------------------------------------------------------------
 */

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
