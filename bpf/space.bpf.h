/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * space.bpf.h - when to look how much room a file system has left: the kernel has no event for it,
 * so the loader asks, and is told when. Example: the tree writes 9 MiB to a file system. The loader
 * is told of the first byte, of the 4th MiB and of the 8th; and of the sum at the end of the run.
 */
#ifndef QPROF_SPACE_BPF_H
#define QPROF_SPACE_BPF_H

#include "pids.bpf.h"

struct space {
	u64 written; /* bytes, to files of it */
	u64 due;     /* bytes, at which the loader is told next */
	u32 told;    /* 1: of the sum */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_SPACES);
	__type(key, u32); /* s_dev */
	__type(value, struct space);
} stored_spaces __weak SEC(".maps");

static const struct space unwritten;

static __always_inline void tell_space(u32 device, u64 written, u32 flags)
{
	struct wire_space *record = bpf_ringbuf_reserve(&control, sizeof(*record), 0);
	const u64 id = current_id();

	if (!record) {
		count(storage.lost);
		return;
	}
	fill_header(&record->h, WIRE_SPACE, sizeof(*record), 0, id >> 32, id, 0);
	record->device = device;
	record->flags = flags;
	record->written = written;
	bpf_ringbuf_submit(record, 0);
}

static __noinline int note_space(u32 device, u64 bytes)
{
	struct space *space = bpf_map_lookup_elem(&stored_spaces, &device);
	u64 written, due;

	if (!space) {
		bpf_map_update_elem(&stored_spaces, &device, &unwritten, BPF_NOEXIST);
		space = bpf_map_lookup_elem(&stored_spaces, &device);
	}
	if (!space) {
		count(storage.spaces_beyond);
		return 0;
	}
	written = __sync_fetch_and_add(&space->written, bytes) + bytes;
	due = *(volatile u64 *)&space->due;
	if (written < due ||
	    __sync_val_compare_and_swap(&space->due, due, written + WIRE_SPACE_STEP) != due)
		return 0;
	tell_space(device, written, 0);
	return 0;
}

/* As tell_last(): of the sums. */
static long tell_last_space(struct bpf_map *map, const u32 *device, struct space *space, u32 *more)
{
	if (space->told)
		return 0;
	if (control_is_half_full()) {
		*more = 1;
		return 1;
	}
	tell_space(*device, space->written, WIRE_STORED_LAST);
	space->told = 1;
	return 0;
}

#endif
