// SPDX-License-Identifier: GPL-2.0-only
/*
 * stall.bpf.c - time in which a thread that asked for memory had to free some first.
 *
 * Direct reclaim, that of a memory cgroup at its limit, and compaction each tell their begin and
 * end, in the thread that pays. They are rare where nothing is wrong, and then nothing runs here.
 *
 * A thread in there runs, sleeps, or waits for a CPU. Waits for a CPU are in cpu_wait_ns, as
 * anywhere else; the rest is reclaim_ns, and the part in which the thread ran is reclaim_cpu_ns
 * too, since cpu_ns has it already.
 *
 * Example: reclaim takes 10 ms, of which the thread ran 6, waited for a CPU 1 and slept 3:
 * reclaim_ns 9 ms, reclaim_cpu_ns 6 ms.
 *
 * Compaction that is not within reclaim is told apart, too: of the tree, in struct wire_stalls.
 */
#include "gpu_wait.bpf.h"
#include "pids.bpf.h"
#include "sched_clock.bpf.h"
#include "stall.bpf.h"
#include "usage.bpf.h"

/* One within another is part of it. */
static __always_inline int begin(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct stall *now, stall = {.depth = 1};
	u64 key = (u64)task;

	if (!find_proc(current_id() >> 32))
		return 0;
	now = bpf_map_lookup_elem(&stalls, &key);
	if (now) {
		now->depth++;
		return 0;
	}
	refresh_sched_clock();
	stall.since_ns = bpf_ktime_get_ns();
	stall.ran_ns = ran(task);
	stall.waited_ns = cpu_wait_of(task);
	if (bpf_map_update_elem(&stalls, &key, &stall, BPF_ANY))
		count(threads_unread);
	return 0;
}

static __always_inline int end(bool is_compaction)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct proc *proc = find_proc(current_id() >> 32);
	u64 key = (u64)task, whole, cpu, wait;
	struct stall *stall = bpf_map_lookup_elem(&stalls, &key);

	if (!stall || --stall->depth)
		return 0;
	refresh_sched_clock();
	whole = bpf_ktime_get_ns() - stall->since_ns;
	cpu = ran(task) - stall->ran_ns;
	wait = cpu_wait_of(task) - stall->waited_ns;
	bpf_map_delete_elem(&stalls, &key);
	if (!proc)
		return 0;
	whole = not_negative(whole - wait);
	if (cpu > whole)
		cpu = whole;
	leave_to_others(key, whole, cpu);
	atomic_add(&proc->gone.reclaim_ns, whole);
	atomic_add(&proc->gone.reclaim_cpu_ns, cpu);
	if (is_compaction)
		atomic_add(&tree_of(proc->job)->stalls.compaction_ns, whole);
	return 0;
}

SEC("raw_tp")
int stall_begins(void *ctx)
{
	return begin();
}

SEC("raw_tp")
int stall_ends(void *ctx)
{
	return end(false);
}

SEC("raw_tp")
int compaction_ends(void *ctx)
{
	return end(true);
}
