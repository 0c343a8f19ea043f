/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * own_stack.bpf.h - each run of a program at a uprobe has a stack of its own.
 *
 * From Linux 6.13 on, functions with 64 bytes of stack and more have it in memory that there is
 * once for each CPU, in programs of the types that do not run twice at a time on a CPU (private
 * stacks, e00931c02568; bpf_enable_priv_stack() in kernel/bpf/verifier.c). Kprobes are of these,
 * and uprobes have their type; but uprobes may sleep and, where the kernel is preempted, be
 * interrupted (there is no such check in bpf_prog_run_array_uprobe()): the next task that comes by
 * on that CPU overwrites all that they know. Seen as calls of one process that were counted as
 * another's.
 *
 * A program with a tail call has no private stack, even if the verifier finds that the call is
 * never reached, and takes it out.
 */
#ifndef QPROF_OWN_STACK_BPF_H
#define QPROF_OWN_STACK_BPF_H

#include "state.bpf.h"

/* Stands in each program at a uprobe. */
static __always_inline void have_own_stack(void *ctx)
{
	if (never)
		bpf_tail_call(ctx, NULL, 0);
}

#endif
