/* SPDX-License-Identifier: GPL-2.0-only */
/* cpu_clocks.h - clock events for the BPF side; see bpf/sched_clock.bpf.h. */
#ifndef QPROF_CPU_CLOCKS_H
#define QPROF_CPU_CLOCKS_H

#include <stddef.h>

struct qprof_bpf;

/*
 * Opens one on each CPU. Without, each thread's CPU time is exact to a tick only: then it fills in
 * why, of `size` bytes.
 */
void cpu_clocks_open(struct qprof_bpf *bpf, char *why, size_t size);

#endif
