/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exited.bpf.h - threads that are in their process's `gone`, or had begun to exit before it was
 * tracked, and may still be on its list of threads.
 *
 * An entry goes when the kernel frees the thread, before its address is used again. Should no event
 * tell of that, the next thread at that address must not be taken for it: so an entry has the time
 * at which its thread began. (Seen on one 6.18: programs were not run for events in softirqs that
 * interrupted the machine's init process, some in 10,000.)
 */
#ifndef QPROF_EXITED_BPF_H
#define QPROF_EXITED_BPF_H

#include "state.bpf.h"

/* struct task_struct * -> its start_boottime; 0: its exit is about to be noted */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_THREADS);
	__type(key, u64);
	__type(value, u64);
} exited __weak SEC(".maps");

static __always_inline bool has_exited(struct task_struct *t)
{
	const u64 key = (u64)t, *started_ns = bpf_map_lookup_elem(&exited, &key);

	return started_ns && *started_ns == BPF_CORE_READ(t, start_boottime);
}

/*
 * Room for what note_exit() writes; NULL, counted, if there is none. It comes before, since memory
 * for it may take 70 us: the allocator of BPF gets more by an interrupt to its own CPU.
 */
static __always_inline u64 *room_for_exit(struct task_struct *t)
{
	const u64 key = (u64)t, not_yet = 0;
	u64 *room;

	bpf_map_update_elem(&exited, &key, &not_yet, BPF_NOEXIST);
	room = bpf_map_lookup_elem(&exited, &key);
	if (!room)
		count(threads_unread);
	return room;
}

/* Returns true for whoever notes it first; also if there is no room. */
static __always_inline bool note_exit(u64 *room, struct task_struct *t)
{
	const u64 started_ns = BPF_CORE_READ(t, start_boottime);
	u64 was;

	if (!room)
		return true;
	was = *(volatile u64 *)room;
	return was != started_ns && __sync_val_compare_and_swap(room, was, started_ns) == was;
}

static __always_inline void forget_exit(struct task_struct *t)
{
	const u64 key = (u64)t;

	bpf_map_delete_elem(&exited, &key);
}

#endif
