// SPDX-License-Identifier: GPL-2.0-only
#include "model/refusal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *profile_limit_name(enum profile_limit limit)
{
	switch (limit) {
	case PROFILE_MAPPINGS:
		return "vm.max_map_count";
	case PROFILE_ADDRESS_SPACE:
		return "RLIMIT_AS";
	case PROFILE_DATA:
		return "RLIMIT_DATA";
	case PROFILE_LOCKED:
		return "RLIMIT_MEMLOCK";
	case PROFILE_OVERCOMMIT:
		return "vm.overcommit_memory";
	case PROFILE_FILE_SYSTEM:
		return "file system";
	case PROFILE_QUOTA_OF_USER:
	case PROFILE_QUOTA_OF_GROUP:
		return "quota";
	case PROFILE_GPU:
		return "GPU";
	case PROFILE_NO_LIMIT:
		break;
	}
	return NULL;
}

/* Whether less than a 16th is left: what one large piece of memory may want. */
static bool is_scarce(uint64_t used, uint64_t most)
{
	return used >= most - most / 16;
}

static void find_refusal(struct profile_death *death, const struct wire_room *room,
			 uint64_t page_size)
{
	const uint64_t total = room->total * page_size, data = room->data * page_size;
	const uint64_t locked = room->locked * page_size;

	if (room->mappings_max && room->mappings >= room->mappings_max) {
		death->refused_by = PROFILE_MAPPINGS;
		death->mappings = room->mappings;
		death->mappings_max = room->mappings_max;
	} else if (is_scarce(total, room->as_max)) {
		death->refused_by = PROFILE_ADDRESS_SPACE;
		death->usage = total;
		death->limit = room->as_max;
	} else if (is_scarce(data, room->data_max)) {
		death->refused_by = PROFILE_DATA;
		death->usage = data;
		death->limit = room->data_max;
	} else if (locked && is_scarce(locked, room->locked_max)) {
		death->refused_by = PROFILE_LOCKED;
		death->usage = locked;
		death->limit = room->locked_max;
	}
}

/* What the machine may promise to all, and not only to one process, comes last. */
static void find_overcommit(struct profile_death *death, const struct wire_ending *wire,
			    const struct profile_config *config)
{
	struct profile_quota all;

	if (!config->committed ||
	    !config->committed(config->context, &wire->h, wire->room.data * config->page_size,
			       &all) ||
	    !is_scarce(all.used, all.limit))
		return;
	death->refused_by = PROFILE_OVERCOMMIT;
	death->usage = all.used;
	death->limit = all.limit;
}

bool refusal_may_be(const struct profile_death *death)
{
	const bool own = death->by == WIRE_BY_KERNEL || death->sender == death->tgid;

	switch (death->signal) {
	case 0:
		return true;
	case SIGABRT:
	case SIGSEGV:
	case SIGTRAP:
	case SIGILL:
		return own && !death->stack_overflow;
	default:
		return false;
	}
}

static bool may_have_no_room(const struct profile_death *death)
{
	return death->signal == SIGBUS ? death->by == WIRE_BY_KERNEL : refusal_may_be(death);
}

/* Less than that is left: a write of a buffer may fail. */
static bool is_full(uint64_t left, uint64_t size)
{
	static const uint64_t LEAST = 1 << 20;

	return left < LEAST && left <= size / 16;
}

static bool find_quota(struct profile_death *death, enum profile_limit by, uint32_t id,
		       const struct profile_quota *quota)
{
	const uint64_t left =
		quota->limit - (quota->used < quota->limit ? quota->used : quota->limit);

	if (!quota->limit || !is_full(left, quota->limit))
		return false;
	death->refused_by = by;
	death->quota_id = id;
	death->left_bytes = left;
	death->limit = quota->limit;
	death->usage = quota->used;
	return true;
}

/* A quota comes last: where nothing is left of the file system, more of it would be no help. */
static bool find_refusing_disk(struct profile_death *death, const struct wire_ending *wire,
			       const struct wire_written *written, const struct profile_disk *disk)
{
	if (is_full(disk->left, disk->size)) {
		death->refused_by = PROFILE_FILE_SYSTEM;
		death->left_bytes = disk->left;
		return true;
	}
	return !wire->passes_quotas &&
	       (find_quota(death, PROFILE_QUOTA_OF_USER, written->uid, &disk->user) ||
		find_quota(death, PROFILE_QUOTA_OF_GROUP, written->gid, &disk->group));
}

/* Returns 0, or -ENOMEM. */
static int find_full(struct profile_death *death, const struct wire_ending *wire,
		     const struct profile_config *config)
{
	/* The capability that passes quotas has what is kept for root, too. */
	const bool as_root = !wire->fsuid || wire->passes_quotas;
	struct profile_disk disk;
	const size_t room = sizeof(disk.mount) * TEXT_GROWTH + 1;

	for (uint32_t i = 0; config->disk && i < wire->n_written; i++) {
		const struct wire_written *written = &wire->written[i];

		if (!config->disk(config->context, written, as_root, &disk) ||
		    !find_refusing_disk(death, wire, written, &disk))
			continue;
		/* Of a fault. What a write found no room for, nothing tells: the last that was
		 * written had room. */
		death->written = written->file;
		death->file_system_bytes = disk.size;
		death->file_system = malloc(room);
		if (!death->file_system)
			return -ENOMEM;
		text_repair(death->file_system, room, disk.mount, strlen(disk.mount), NULL);
		return 0;
	}
	return 0;
}

int refusal_find(struct profile_death *death, const struct wire_ending *wire,
		 const struct profile_config *config)
{
	if (refusal_may_be(death))
		find_refusal(death, &wire->room, config->page_size);
	if (!death->refused_by && may_have_no_room(death) && find_full(death, wire, config))
		return -ENOMEM;
	if (!death->refused_by && refusal_may_be(death))
		find_overcommit(death, wire, config);
	return 0;
}
