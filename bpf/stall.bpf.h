/* SPDX-License-Identifier: GPL-2.0-only */
/* stall.bpf.h - threads that free memory, as they asked for some: see stall.bpf.c. */
#ifndef QPROF_STALL_BPF_H
#define QPROF_STALL_BPF_H

#include "state.bpf.h"

struct stall {
	u64 since_ns;
	u64 ran_ns, waited_ns; /* what the thread had run, and waited for a CPU, at its begin */
	u32 depth;
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_STALLED);
	__type(key, u64); /* address of the task */
	__type(value, struct stall);
} stalls __weak SEC(".maps");

#endif
