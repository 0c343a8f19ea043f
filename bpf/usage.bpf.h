/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usage.bpf.h - CPU time and I/O of processes, read from the kernel's own account when they are
 * asked for.
 *
 * The kernel adds to task->ioac and task->se.sum_exec_runtime in any case, so nothing is hooked and
 * a read() pays nothing: a checkpoint sums what the threads of the tracked processes have. A thread
 * that exits is added to its process's `gone`, a process to the tree's. Not used: signal->ioac,
 * into which wait() also adds the children's (kernel/exit.c, wait_task_zombie).
 */
#ifndef QPROF_USAGE_BPF_H
#define QPROF_USAGE_BPF_H

#include "sched_clock.bpf.h"
#include "state.bpf.h"

static __always_inline void add_usage(struct wire_usage *sum, const struct wire_usage *more)
{
	sum->rchar += more->rchar;
	sum->wchar += more->wchar;
	sum->extra_read += more->extra_read;
	sum->extra_write += more->extra_write;
	sum->read_bytes += more->read_bytes;
	sum->write_bytes += more->write_bytes;
	sum->cancelled_write_bytes += more->cancelled_write_bytes;
	sum->cpu_ns += more->cpu_ns;
}

static __always_inline void subtract_usage(struct wire_usage *sum, const struct wire_usage *less)
{
	sum->rchar -= less->rchar;
	sum->wchar -= less->wchar;
	sum->extra_read -= less->extra_read;
	sum->extra_write -= less->extra_write;
	sum->read_bytes -= less->read_bytes;
	sum->write_bytes -= less->write_bytes;
	sum->cancelled_write_bytes -= less->cancelled_write_bytes;
	sum->cpu_ns -= less->cpu_ns;
}

/*
 * What a sleepable program adds for threads that are running may be some microseconds more than
 * what the kernel adds to their sums a moment later. CPU time never falls for that. And what
 * io_uring takes back (uring.bpf.c) may have been counted before a process joined its job: no sum
 * is told below 0.
 */
static __always_inline void keep_from_falling(struct wire_usage *usage, u64 *told)
{
	usage->extra_read = not_negative(usage->extra_read);
	usage->extra_write = not_negative(usage->extra_write);
	atomic_max(told, not_negative(usage->cpu_ns));
	usage->cpu_ns = *(volatile u64 *)told;
}

static __always_inline void atomic_add_usage(struct wire_usage *sum, const struct wire_usage *more)
{
	atomic_add(&sum->rchar, more->rchar);
	atomic_add(&sum->wchar, more->wchar);
	atomic_add(&sum->extra_read, more->extra_read);
	atomic_add(&sum->extra_write, more->extra_write);
	atomic_add(&sum->read_bytes, more->read_bytes);
	atomic_add(&sum->write_bytes, more->write_bytes);
	atomic_add(&sum->cancelled_write_bytes, more->cancelled_write_bytes);
	atomic_add(&sum->cpu_ns, more->cpu_ns);
}

static __always_inline void add_thread(struct wire_usage *sum, struct task_struct *t)
{
	sum->rchar += BPF_CORE_READ(t, ioac.rchar);
	sum->wchar += BPF_CORE_READ(t, ioac.wchar);
	sum->read_bytes += BPF_CORE_READ(t, ioac.read_bytes);
	sum->write_bytes += BPF_CORE_READ(t, ioac.write_bytes);
	sum->cancelled_write_bytes += BPF_CORE_READ(t, ioac.cancelled_write_bytes);
	sum->cpu_ns += BPF_CORE_READ(t, se.sum_exec_runtime);
	sum->cpu_ns += not_yet_added(t);
}

/*
 * Adds to *sum all that the process has used since its birth (or since it was tracked, of threads
 * that exited before): base is to be subtracted. The answer is how many threads were read.
 */
int add_process(struct wire_usage *sum, struct proc *proc);

/* Moves threads that had exited before the process was tracked to `gone`: no event will. */
int bury_zombies(struct proc *proc);

/* 1: every thread has passed its exit event, and what it used is in `gone`. */
int all_threads_gone(struct proc *proc);

/* What the process has used since it was tracked. */
static __always_inline void used_by_process(struct proc *proc, struct wire_usage *usage)
{
	__builtin_memset(usage, 0, sizeof(*usage));
	add_process(usage, proc);
	subtract_usage(usage, &proc->base);
	keep_from_falling(usage, &proc->cpu_told);
}

/* What the job of a process has used whose others are gone, given what that has. 0: nothing is
 * stale. */
int used_alone(struct proc *proc, struct wire_usage *own, struct wire_usage *usage);

/*
 * What a job's tree has used since it was tracked, and its hugetlb memory, which takes the same
 * walk. 1: what is from others may be stale_ns old.
 */
int read_tree(struct wire_snapshot *to, u32 job, u64 now);

#endif
