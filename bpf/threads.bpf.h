/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * threads.bpf.h - the kernel's list of a process's threads, for walks by bpf_loop().
 *
 * Most programs read it under RCU, sleepable ones do not. So each pointer is read with
 * bpf_probe_read_kernel(), and a walk ends at anything that is no thread of the process any more.
 *
 * The list is a ring: signal->thread_head -> thread 1's thread_node -> thread 2's -> thread_head.
 */
#ifndef QPROF_THREADS_BPF_H
#define QPROF_THREADS_BPF_H

#include "state.bpf.h"

enum {
	/*
	 * Threads that one walk visits: all of a process. If a walk at the attach left one out,
	 * all that the thread has used would count as new at its exit.
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

/* Returns the address of signal->thread_head, where the list begins and ends. */
static __always_inline u64 list_head(u64 signal)
{
	return signal + bpf_core_field_offset(struct signal_struct, thread_head);
}

static __always_inline struct task_struct *thread_at(u64 node)
{
	return (void *)(node - bpf_core_field_offset(struct task_struct, thread_node));
}

#endif
