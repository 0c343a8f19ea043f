/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usage.bpf.h - CPU time and I/O of processes, read from the kernel's own account at a checkpoint.
 *
 * The kernel adds to task->ioac and task->se.sum_exec_runtime in any case. So no program hooks
 * read() or the scheduler, and they cost the profiled program nothing: a checkpoint sums over the
 * threads of the tracked processes. A thread that exits adds what it used to its process's `gone`,
 * a process that exits adds what it used to its tree's.
 *
 * What a process used before it was tracked is its `base`, and a checkpoint subtracts it. Example:
 * at the attach a process with two threads has used 200 ms: base = 200. Later one thread has
 * exited with 250 ms (gone = 250), the other has used 90 ms: 250 + 90 - 200 = 140 ms since then.
 *
 * signal->ioac is no alternative: wait() adds the children's share to it, too (kernel/exit.c,
 * wait_task_zombie).
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
	sum->major_faults += more->major_faults;
	sum->minor_faults += more->minor_faults;
	sum->cpu_wait_ns += more->cpu_wait_ns;
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
	sum->major_faults -= less->major_faults;
	sum->minor_faults -= less->minor_faults;
	sum->cpu_wait_ns -= less->cpu_wait_ns;
}

/*
 * Two things could make a total fall from one checkpoint to the next.
 * - CPU time: for a thread that runs, a sleepable program may add some microseconds more than the
 *   kernel adds a moment later. So the highest that was reported, *told, is reported again.
 * - Bytes: io_uring takes back what it had counted too early (uring.bpf.c), perhaps from before
 *   the process joined its job. So no sum is reported below 0.
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
	atomic_add(&sum->major_faults, more->major_faults);
	atomic_add(&sum->minor_faults, more->minor_faults);
	atomic_add(&sum->cpu_wait_ns, more->cpu_wait_ns);
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
	sum->major_faults += BPF_CORE_READ(t, maj_flt);
	sum->minor_faults += BPF_CORE_READ(t, min_flt);
	/* Kept with CONFIG_SCHED_INFO; a wait that goes on is added when it ends. */
	if (bpf_core_field_exists(t->sched_info.run_delay))
		sum->cpu_wait_ns += BPF_CORE_READ(t, sched_info.run_delay);
}

/*
 * Adds to *sum what the threads of a process have used since they began, those that have exited
 * while it was tracked included. The caller subtracts base. Returns how many threads were read.
 */
int add_process(struct wire_usage *sum, struct proc *proc);

/* The same without a second try: returns -1 if a thread exited meanwhile. */
int add_process_once(struct wire_usage *sum, struct proc *proc);

/*
 * Adds a leader that exited before its process was tracked to `gone`: no event will do so. Returns
 * 1 if there was one.
 */
int bury_zombies(struct proc *proc);

/* Returns 1 if every thread has passed its exit event, and `gone` has what they used. */
int all_threads_gone(struct proc *proc);

/* Says what the process has used since it was tracked. Returns how many threads were read. */
static __always_inline u32 used_by_process(struct proc *proc, struct wire_usage *usage)
{
	u32 threads;

	__builtin_memset(usage, 0, sizeof(*usage));
	threads = add_process(usage, proc);
	subtract_usage(usage, &proc->base);
	keep_from_falling(usage, &proc->cpu_told);
	return threads;
}

/*
 * Says what a job has used of which only this process is alive, given what the process has used.
 * Returns 0: nothing of it is stale.
 */
int used_alone(struct proc *proc, struct wire_usage *own, struct wire_usage *usage);

/*
 * Fills in what the tree of the process that hit a checkpoint has used since it was tracked, and
 * how much hugetlb memory it has, in one walk over the other processes: what this one has used, in
 * so many threads, is in c->own. Returns 1 if the usage of others may be config.stale_ns old.
 */
int read_tree(struct wire_checkpoint *c, struct proc *proc, u32 threads);

#endif
