/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * threads.bpf.h - the kernel's list of a process's threads, for walks by bpf_loop().
 *
 * It is read under RCU in most programs and without it in a sleepable one, so every pointer is read
 * with bpf_probe_read_kernel() and a walk ends at what is no thread of the process any more.
 */
#ifndef QPROF_THREADS_BPF_H
#define QPROF_THREADS_BPF_H

#include "state.bpf.h"

enum {
	/*
	 * Threads of a process that one walk reads: all of them. What a walk at the attach left
	 * out would be taken for new at the thread's exit.
	 */
	WALK_THREADS = 1 << 20,
};

static __always_inline u64 first_node(u64 signal)
{
	return (u64)BPF_CORE_READ((struct signal_struct *)signal, thread_head.next);
}

static __always_inline u64 next_node(u64 node)
{
	return (u64)BPF_CORE_READ((struct list_head *)node, next);
}

/* Address of signal->thread_head, where the list begins and ends. */
static __always_inline u64 list_head(u64 signal)
{
	return signal + bpf_core_field_offset(struct signal_struct, thread_head);
}

static __always_inline struct task_struct *thread_at(u64 node)
{
	return (void *)(node - bpf_core_field_offset(struct task_struct, thread_node));
}

#endif
