/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * space.bpf.h - when to look how much room a file system has left: the kernel has no event for it,
 * so the loader asks, and is told when. Example: the tree writes 9 MiB to a file system. The loader
 * is told of the first byte, of the 4th MiB and of the 8th; and of the sum at the end of the run.
 */
#ifndef QPROF_SPACE_BPF_H
#define QPROF_SPACE_BPF_H

#include "pids.bpf.h"
#include "storage.bpf.h"

static const struct space unwritten;

static __always_inline void tell_space(const struct device_key *of, u64 written, u32 flags)
{
	struct wire_space *record = reserve_in_half(sizeof(*record));
	const u64 id = current_id();

	if (!record) {
		count(storage.lost);
		return;
	}
	fill_header(&record->h, WIRE_SPACE, sizeof(*record), 0, id >> 32, id, 0);
	record->device = of->device;
	record->run = of->run;
	record->reserved = 0;
	record->flags = flags;
	record->written = written;
	submit(record);
}

static __noinline int note_space(u32 device, u32 run, u64 bytes)
{
	const struct device_key of = {device, run};
	struct space *space = find_kept(&stored_spaces, &of, run, &unwritten);
	u64 written, due;

	if (!space) {
		count(storage.spaces_beyond);
		return 0;
	}
	written = __sync_fetch_and_add(&space->written, bytes) + bytes;
	due = *(volatile u64 *)&space->due;
	if (written < due ||
	    __sync_val_compare_and_swap(&space->due, due, written + WIRE_SPACE_STEP) != due)
		return 0;
	tell_space(&of, written, 0);
	return 0;
}

#endif
