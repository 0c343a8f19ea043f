/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_wait.bpf.h - threads in calls that wait for a GPU: see gpu_wait.bpf.c. */
#ifndef QPROF_GPU_WAIT_BPF_H
#define QPROF_GPU_WAIT_BPF_H

#include "state.bpf.h"

/* The outermost such call of a thread. */
struct gpu_wait {
	u64 stack; /* where it ended as the call began */
	u64 since_ns;
	u64 ran_ns, waited_ns;	      /* what the thread had run, and waited for a CPU, by then */
	u64 others_ns, others_ran_ns; /* within the call, and of other waits: storage, reclaim */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_STALLED);
	__type(key, u64); /* address of the task */
	__type(value, struct gpu_wait);
} gpu_waits __weak SEC(".maps");

/* 1: a thread has made such a call. Until then nobody looks into the map. */
extern u32 gpu_waited;

static __always_inline bool waits_for_gpu(u64 task)
{
	return *(volatile u32 *)&gpu_waited && bpf_map_lookup_elem(&gpu_waits, &task);
}

/* If the thread is in such a call, that time of it is another wait's. */
static __always_inline void leave_to_others(u64 task, u64 ns, u64 ran_ns)
{
	struct gpu_wait *wait;

	if (!*(volatile u32 *)&gpu_waited)
		return;
	wait = bpf_map_lookup_elem(&gpu_waits, &task);
	if (!wait)
		return;
	atomic_add(&wait->others_ns, ns);
	atomic_add(&wait->others_ran_ns, ran_ns);
}

/* The call of the current thread begins, with its stack there. */
int begin_gpu_wait(u64 stack);
/* The call of the current thread is over, or the thread is. */
int end_gpu_wait(struct proc *proc, u64 task);
/* Adds what a thread has waited so far in a call that goes on. Nobody else writes to *sum. */
int add_gpu_wait(struct wire_usage *sum, u64 task);

#endif
