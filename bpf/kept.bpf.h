/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kept.bpf.h - before 6.2: pages that threads have counted for themselves alone.
 *
 * There a thread keeps its own count of pages, and adds it to its mm's counters once in 64 page
 * faults, and before it unmaps anything. So a peak is right: it is noted when RSS falls. But RSS at
 * rest lacks what the threads keep back, and a checkpoint looks that up.
 *
 * Example: 3 threads fault 40, 10 and 70 pages. The third has added 64 of its 70, the others
 * nothing: the mm's counter says 64. A checkpoint adds 40 + 10 + 6 and says 120 pages.
 */
#ifndef QPROF_KEPT_BPF_H
#define QPROF_KEPT_BPF_H

#include "mms.bpf.h"

/* Add what the threads of a process, or of a whole job, keep back. From 6.2 on: nothing. */
int add_kept_by_process(struct wire_memory *to, struct proc *proc);
int add_kept_by_tree(struct wire_memory *to, u32 job);

#endif
