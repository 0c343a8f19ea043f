/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usage.bpf.h - CPU time and I/O of processes, read from the kernel's own account at a checkpoint.
 *
 * The kernel adds to task->ioac and task->se.sum_exec_runtime in any case. So no program hooks
 * read() or the scheduler, and they cost the profiled program nothing: a checkpoint sums over the
 * threads of the tracked processes. A thread that exits adds what it used to its process's `gone`,
 * a process that exits adds what it used to its tree's.
 *
 * What a process used before it was tracked is taken off its `gone`. Example: at the attach a
 * process with two threads has used 200 ms: gone = -200. Later one thread has exited with 250 ms
 * (gone = 50), the other has used 90 ms: 50 + 90 = 140 ms since then.
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
#define ADD(member) sum->member += more->member;
	WIRE_USAGE_MEMBERS(ADD)
#undef ADD
}

static __always_inline void subtract_usage(struct wire_usage *sum, const struct wire_usage *less)
{
#define SUBTRACT(member) sum->member -= less->member;
	WIRE_USAGE_MEMBERS(SUBTRACT)
#undef SUBTRACT
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
#define ADD(member) atomic_add(&sum->member, more->member);
	WIRE_USAGE_MEMBERS(ADD)
#undef ADD
}

static __always_inline void atomic_subtract_usage(struct wire_usage *sum,
						  const struct wire_usage *less)
{
#define SUBTRACT(member) atomic_add(&sum->member, -less->member);
	WIRE_USAGE_MEMBERS(SUBTRACT)
#undef SUBTRACT
}

/* The CPU time of a thread. */
static __always_inline u64 ran(struct task_struct *t)
{
	return BPF_CORE_READ(t, se.sum_exec_runtime) + not_yet_added(t);
}

/* What the kernel keeps of a thread: F(member, its figure). */
#define THREAD_USAGE(F, t)                                                                         \
	F(rchar, BPF_CORE_READ(t, ioac.rchar))                                                     \
	F(wchar, BPF_CORE_READ(t, ioac.wchar))                                                     \
	F(read_bytes, BPF_CORE_READ(t, ioac.read_bytes))                                           \
	F(write_bytes, BPF_CORE_READ(t, ioac.write_bytes))                                         \
	F(cancelled_write_bytes, BPF_CORE_READ(t, ioac.cancelled_write_bytes))                     \
	F(cpu_ns, ran(t))                                                                          \
	F(major_faults, BPF_CORE_READ(t, maj_flt))                                                 \
	F(minor_faults, BPF_CORE_READ(t, min_flt))                                                 \
	F(cpu_wait_ns, cpu_wait_of(t))                                                             \
	F(cpu_user_ns, BPF_CORE_READ(t, utime))                                                    \
	F(cpu_system_ns, BPF_CORE_READ(t, stime))                                                  \
	F(voluntary_switches, BPF_CORE_READ(t, nvcsw))                                             \
	F(involuntary_switches, BPF_CORE_READ(t, nivcsw))

static __always_inline void add_thread(struct wire_usage *sum, struct task_struct *t)
{
#define ADD(member, figure) sum->member += (figure);
	THREAD_USAGE(ADD, t)
#undef ADD
}

/* For the sums to which several CPUs add at a time. */
static __always_inline void atomic_add_thread(struct wire_usage *sum, struct task_struct *t)
{
#define ADD(member, figure) atomic_add(&sum->member, figure);
	THREAD_USAGE(ADD, t)
#undef ADD
}

/*
 * Says in *usage what a process has used since it was tracked. It is no variable of the stack where
 * that can be helped: on 6.1 the frames of a function and all its callers share 512 bytes. Returns
 * how many threads were read.
 */
int read_process(struct wire_usage *usage, struct proc *proc);

/* The same without a second try: returns -1 if a thread exited meanwhile. */
int read_process_once(struct wire_usage *usage, struct proc *proc);

/* NULL: it joined no job, as in a run, or was born into its own. */
outlined struct wire_usage *joined_of(const struct proc *proc)
{
	const u32 slot = proc->slot;

	return proc->has_joined ? bpf_map_lookup_elem(&joined, &slot) : NULL;
}

/* *sum += *part. Returns 0, as a global function has to. */
int add_part(struct wire_usage *sum, const struct wire_usage *part);
/* *sum -= *part, if there is a part. */
int leave_out_part(struct wire_usage *sum, const struct wire_usage *part);
/* The same of a sum to which several CPUs add at a time. */
int leave_out_of_all(struct wire_usage *sum, const struct wire_usage *part);

/* Room for a sum, for want of it on the stack: of an event, and of a walk that it may interrupt. */
enum { SUM_OF_EVENT, SUM_OF_WALK, SUMS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SUMS);
	__type(key, u32);
	__type(value, struct wire_usage);
} sums __weak SEC(".maps");

/* What the process has used until now does not count. */
static __always_inline void count_from_now(struct proc *proc, u32 sum)
{
	struct wire_usage *used = bpf_map_lookup_elem(&sums, &sum);

	if (!used)
		return;
	read_process(used, proc);
	atomic_subtract_usage(&proc->gone, used);
}

/*
 * Comes when a process that ran before has been put into `procs`. Leaves out which of its threads
 * had begun to exit by then: whether an event will tell of them cannot be known. It may take them
 * long: the files that they close may be on a file system that does not answer. What they use
 * meanwhile is not counted. Returns 0, as a global function has to.
 */
int bury_exiting(struct proc *proc);

/* Returns 1 if every thread has passed its exit event, and `gone` has what they used. */
int all_threads_gone(struct proc *proc);

/* As read_process(), and never less CPU time than it said before. */
static __always_inline u32 used_by_process(struct proc *proc, struct wire_usage *usage)
{
	u32 threads = read_process(usage, proc);

	keep_from_falling(usage, &proc->cpu_told);
	return threads;
}

/*
 * Says what a job has used of which only this process is alive, given what the process has used.
 * Returns 0: nothing of it is stale.
 */
int used_alone(struct proc *proc, struct wire_usage *own, struct wire_usage *usage);

/*
 * Fills in what the process that hit a checkpoint and its tree have used since they were tracked,
 * and how much hugetlb memory the tree has, in one walk over its processes. Returns 1 if the usage
 * of others may be config.stale_ns old.
 */
int read_tree(struct wire_checkpoint *c, struct proc *proc);

#endif
