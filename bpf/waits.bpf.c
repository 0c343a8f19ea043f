// SPDX-License-Identifier: GPL-2.0-only
/*
 * waits.bpf.c - what threads sleep for: storage, a lock, or anything else. Only if the user asked
 * (--waits), for it looks at each context switch of the machine.
 *
 * A thread that gives up its CPU to sleep says what for: with in_iowait the kernel counts it as
 * waiting for I/O (io_schedule()); in futex(2), it waits for another thread. What a thread that was
 * preempted waits for is a CPU, and cpu_wait_ns has it, from the end of its sleep on.
 *
 * So the time of a thread is, without a gap: cpu_ns, cpu_wait_ns, these sleeps, and what of
 * reclaim_ns and of gpu_wait_ns is no CPU time.
 *
 * Example: a thread runs 2 ms, sleeps 5 ms in read(2) of a cold file, is woken, has a CPU 1 ms
 * later, and runs for 2 ms: cpu_ns 4, storage_wait_ns 5, cpu_wait_ns 1 ms.
 *
 * A sleep that goes on at a checkpoint is read there, in the walk over threads (usage.bpf.c).
 *
 * The part of a wait for a CPU in which a quota stopped the thread's run queue is told apart, of
 * the tree: the kernel says for how long each queue has been stopped. Of a thread that is moved to
 * another queue while it waits, what the one was that it waited in first counts.
 */
#include "exited.bpf.h"
#include "gpu_wait.bpf.h"
#include "pids.bpf.h"
#include "stall.bpf.h"
#include "syscalls.bpf.h"
#include "usage.bpf.h"
#include "waits.bpf.h"

#define TASK_DEAD 0x80

static __always_inline enum nap_kind kind_of(struct task_struct *task)
{
	u64 key = (u64)task;

	if (bpf_map_lookup_elem(&stalls, &key))
		return NAP_RECLAIM;
	if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
		return NAP_STORAGE;
	if (waits_for_gpu(key))
		return NAP_GPU;
	switch (syscall_of(task)) {
	case FUTEX:
	case FUTEX_WAITV:
	case FUTEX_WAIT:
		return NAP_LOCK;
	}
	return NAP_SLEEP;
}

static __always_inline void fall_asleep(struct task_struct *task, u64 now)
{
	struct nap new = {.since_ns = now, .tgid = tgid_of(task)}, *nap;
	u64 key = (u64)task;

	/* What a thread does after it was left out, or counted as gone, is in no sum. */
	if (!find_proc(new.tgid) || (BPF_CORE_READ(task, flags) & PF_EXITING && has_exited(task)))
		return;
	new.kind = kind_of(task);
	nap = bpf_map_lookup_elem(&naps, &key);
	if (nap)
		*nap = new;
	else if (bpf_map_update_elem(&naps, &key, &new, BPF_ANY))
		count(threads_unread);
}

/* Since then the task waits for a CPU. */
static __always_inline void get_ready(struct nap *nap, struct task_struct *task, u64 now)
{
	if (!tells_stops(task))
		return;
	nap->queue = (u64)BPF_CORE_READ(task, se.cfs_rq);
	nap->stopped_ns = stopped_ns(nap->queue);
	nap->ready_ns = now;
}

/* A CPU is taken from the task. */
static __always_inline void lose_cpu(struct task_struct *task, u64 now)
{
	struct nap new = {.tgid = tgid_of(task)}, *nap;
	u64 key = (u64)task;

	if (!tells_stops(task) || !find_proc(new.tgid))
		return;
	nap = bpf_map_lookup_elem(&naps, &key);
	if (!nap) {
		bpf_map_update_elem(&naps, &key, &new, BPF_ANY);
		nap = bpf_map_lookup_elem(&naps, &key);
	}
	if (nap)
		get_ready(nap, task, now);
	else
		count(threads_unread);
}

static __always_inline void wake_up(struct task_struct *task, u64 now)
{
	u64 key = (u64)task, since, *sum;
	struct nap *nap = bpf_map_lookup_elem(&naps, &key);
	struct proc *proc;

	if (!nap || !nap->since_ns)
		return;
	since = nap->since_ns;
	if (nap->kind == NAP_STORAGE)
		leave_to_others(key, now - since, 0);
	nap->since_ns = 0;
	get_ready(nap, task, now);
	proc = find_proc(nap->tgid);
	sum = proc ? sum_of(&proc->gone, nap->kind) : NULL;
	if (sum)
		atomic_add(sum, now - since);
}

/*
 * The task is about to have a CPU. Does it still sleep, then no event told that it was woken: the
 * program was not run (in the interrupt that came within it, and in softirqs that interrupted the
 * init process of one 6.18). The kernel knows since when it has waited for the CPU.
 */
static __always_inline void get_cpu(struct task_struct *task, u64 now)
{
	u64 key = (u64)task, stopped, waited, woken;
	struct nap *nap = bpf_map_lookup_elem(&naps, &key);
	struct proc *proc;

	if (nap && nap->since_ns) {
		woken = now - queued_for(task);
		wake_up(task, woken > nap->since_ns ? woken : nap->since_ns);
	}
	if (!nap || !nap->ready_ns)
		return;
	waited = now - nap->ready_ns;
	nap->ready_ns = 0;
	stopped = not_negative(stopped_ns(nap->queue) - nap->stopped_ns);
	proc = stopped ? find_proc(nap->tgid) : NULL;
	if (proc)
		atomic_add(&tree_of(proc->job)->stalls.throttled_ns,
			   stopped < waited ? stopped : waited);
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(task_switches, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	const u64 now = bpf_ktime_get_ns();

	if (!prev->pid || prev_state & TASK_DEAD)
		; /* idle, or gone */
	else if (preempt || prev_state == TASK_RUNNING)
		lose_cpu(prev, now);
	else
		fall_asleep(prev, now);
	if (next->pid)
		get_cpu(next, now);
	return 0;
}

/* The sleep ends as the task is made ready; what follows is a wait for a CPU. */
SEC("?tp_btf/sched_wakeup")
int BPF_PROG(task_wakes, struct task_struct *task)
{
	wake_up(task, bpf_ktime_get_ns());
	return 0;
}
