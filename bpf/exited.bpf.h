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

enum { EEXIST = 17 }; /* uapi/asm-generic/errno-base.h */

/* struct task_struct * -> its start_boottime */
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

/* Returns true for whoever notes it first; also, counted, if there is no room. */
static __always_inline bool note_exit(struct task_struct *t)
{
	const u64 key = (u64)t, started_ns = BPF_CORE_READ(t, start_boottime);
	const long code = bpf_map_update_elem(&exited, &key, &started_ns, BPF_NOEXIST);
	u64 *of, was;

	if (!code)
		return true;
	of = code == -EEXIST ? bpf_map_lookup_elem(&exited, &key) : NULL;
	if (!of) {
		count(threads_unread);
		return true;
	}
	was = *(volatile u64 *)of;
	return was != started_ns && __sync_val_compare_and_swap(of, was, started_ns) == was;
}

static __always_inline void forget_exit(struct task_struct *t)
{
	const u64 key = (u64)t;

	bpf_map_delete_elem(&exited, &key);
}

#endif
