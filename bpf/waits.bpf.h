/* SPDX-License-Identifier: GPL-2.0-only */
/* waits.bpf.h - what threads sleep for, if the user asked: see waits.bpf.c. */
#ifndef QPROF_WAITS_BPF_H
#define QPROF_WAITS_BPF_H

#include "pids.bpf.h"
#include "state.bpf.h"

enum nap_kind {
	NAP_SLEEP,
	NAP_STORAGE,
	NAP_LOCK,
	NAP_RECLAIM, /* stall.bpf.c counts it */
};

/* The sleep of a thread. */
struct nap {
	u64 since_ns; /* 0: it is awake */
	u32 kind;     /* enum nap_kind */
	u32 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_THREADS);
	__type(key, u64); /* address of the task */
	__type(value, struct nap);
} naps __weak SEC(".maps");

/* Adds a sleep to *usage, which nobody else writes. */
static __always_inline void add_nap(struct wire_usage *usage, u32 kind, u64 ns)
{
	switch (kind) {
	case NAP_SLEEP:
		usage->sleep_ns += ns;
		break;
	case NAP_STORAGE:
		usage->storage_wait_ns += ns;
		break;
	case NAP_LOCK:
		usage->lock_wait_ns += ns;
		break;
	}
}

/* The same with the sleep of a thread that goes on. */
static __always_inline void add_sleeping(struct wire_usage *usage, u64 task)
{
	struct nap *nap = bpf_map_lookup_elem(&naps, &task);
	u64 since = nap ? *(volatile u64 *)&nap->since_ns : 0;

	if (since)
		add_nap(usage, nap->kind, bpf_ktime_get_ns() - since);
}

/* A thread that sleeps as its process is tracked: its sleep counts from now on, as what it is not
 * known to be. */
static __always_inline void note_sleeping(struct task_struct *task)
{
	struct nap nap = {.since_ns = bpf_ktime_get_ns(), .tgid = tgid_of(task)};
	u64 key = (u64)task;

	if (BPF_CORE_READ(task, __state) == TASK_RUNNING)
		return;
	nap.kind = BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait) ? NAP_STORAGE : NAP_SLEEP;
	bpf_map_update_elem(&naps, &key, &nap, BPF_NOEXIST);
}

#endif
