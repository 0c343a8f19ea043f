/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kept.bpf.h - before 6.2: pages that threads have counted for themselves and not told of yet.
 *
 * There a thread adds what it did to its mm's counters once in 64 page faults, and before it unmaps
 * anything. So a peak is right, when it falls; what there is while it stands still is not, until
 * what the threads keep back is looked up, which a checkpoint does.
 */
#ifndef QPROF_KEPT_BPF_H
#define QPROF_KEPT_BPF_H

#include "mms.bpf.h"

/* Adds what the threads of a process keep back, or of all of a job. Nothing from 6.2 on. */
int add_kept_by_process(struct wire_memory *to, struct proc *proc);
int add_kept_by_tree(struct wire_memory *to, u32 job);

#endif
