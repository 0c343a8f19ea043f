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
 *
 * With --window, sleeps count in some stretches of time alone. In between, a context switch costs a
 * look at a word. As such a stretch begins, a walk over all threads notes those that sleep by then.
 */
#include "exited.bpf.h"
#include "gpu_wait.bpf.h"
#include "pids.bpf.h"
#include "stall.bpf.h"
#include "syscalls.bpf.h"
#include "usage.bpf.h"
#include "waits.bpf.h"

#define TASK_DEAD 0x80

u64 waits_from_ns;
u32 waits_end; /* 1: switch_sleepers() runs before they are switched off */

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

/* Since then the task waits for a CPU. */
static __always_inline void get_ready(struct nap *nap, struct task_struct *task, u64 now)
{
	if (!tells_stops(task))
		return;
	nap->queue = (u64)BPF_CORE_READ(task, se.cfs_rq);
	nap->stopped_ns = stopped_ns(nap->queue);
	nap->ready_ns = now;
}

static __always_inline void wake_up(struct task_struct *task, u64 now)
{
	u64 key = (u64)task, since, *sum;
	struct nap *nap = bpf_map_lookup_elem(&naps, &key);
	struct proc *proc;

	if (!nap || !nap->since_ns)
		return;
	since = asleep_since(nap);
	if (since && nap->kind == NAP_STORAGE)
		leave_to_others(key, now - since, 0);
	nap->since_ns = 0;
	get_ready(nap, task, now);
	proc = since ? find_proc(nap->tgid) : NULL;
	sum = proc ? sum_of(&proc->gone, nap->kind) : NULL;
	if (sum)
		atomic_add(sum, now - since);
}

/* The task has a CPU or gets it now: a sleep that it is noted in is over, though no event told. */
static __always_inline void end_unseen(struct nap *nap, struct task_struct *task, u64 now)
{
	if (nap && nap->since_ns)
		wake_up(task, slept_until(task, nap, now));
}

static __always_inline void fall_asleep(struct task_struct *task, u64 now)
{
	struct nap new = {.since_ns = now, .tgid = tgid_of(task)}, *nap;
	u64 key = (u64)task;

	/* What a thread does after it was left out, or counted as gone, is in no sum. */
	if (!find_proc(new.tgid) || (BPF_CORE_READ(task, flags) & PF_EXITING && has_exited(task)))
		return;
	new.kind = kind_of(task);
	new.waited_ns = cpu_wait_of(task);
	nap = bpf_map_lookup_elem(&naps, &key);
	end_unseen(nap, task, now);
	if (nap)
		*nap = new;
	else if (bpf_map_update_elem(&naps, &key, &new, BPF_ANY))
		count(threads_unread);
}

/*
 * A CPU is taken from the task. switch_sleepers() may have met it as it was about to sleep, and
 * then it did not: it has had its CPU since before that.
 */
static __always_inline void lose_cpu(struct task_struct *task, u64 now)
{
	struct nap new = {.tgid = tgid_of(task)}, *nap;
	u64 key = (u64)task;

	nap = bpf_map_lookup_elem(&naps, &key);
	end_unseen(nap, task, now);
	if (!tells_stops(task) || !find_proc(new.tgid))
		return;
	if (!nap) {
		bpf_map_update_elem(&naps, &key, &new, BPF_ANY);
		nap = bpf_map_lookup_elem(&naps, &key);
	}
	if (!nap) {
		count(threads_unread);
		return;
	}
	get_ready(nap, task, now);
}

/* The task is about to have a CPU. */
static __always_inline void get_cpu(struct task_struct *task, u64 now)
{
	u64 key = (u64)task, stopped, waited, ready;
	struct nap *nap = bpf_map_lookup_elem(&naps, &key);
	struct proc *proc;

	end_unseen(nap, task, now);
	if (!nap || !nap->ready_ns)
		return;
	ready = nap->ready_ns;
	nap->ready_ns = 0;
	if (ready < waits_from_ns)
		return;
	waited = now - ready;
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
	u64 now;

	if (!waits_count())
		return 0;
	now = bpf_ktime_get_ns();
	if (now - sched_clock_seen_ns > FRESH_LOOK_NS)
		refresh_sched_clock();
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
	if (waits_count())
		wake_up(task, bpf_ktime_get_ns());
	return 0;
}

/*
 * Sleeps begin to count: those that go on count from now on. The thread may be woken at any moment:
 * it has its state before the event of that runs, which finds what is noted here, or we see it.
 */
static __always_inline void note_sleeper(struct task_struct *task)
{
	struct nap new = {.tgid = tgid_of(task)}, *nap;
	u64 key = (u64)task;

	if (BPF_CORE_READ(task, __state) == TASK_RUNNING || BPF_CORE_READ(task, flags) & PF_EXITING)
		return;
	if (!find_proc(new.tgid) || asleep_since(bpf_map_lookup_elem(&naps, &key)))
		return;
	new.kind = kind_of(task);
	new.waited_ns = cpu_wait_of(task);
	new.since_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&naps, &key, &new, BPF_ANY)) {
		count(threads_unread);
		return;
	}
	nap = bpf_map_lookup_elem(&naps, &key);
	if (nap && BPF_CORE_READ(task, __state) == TASK_RUNNING)
		nap->since_ns = 0;
}

/* Sleeps are about to count no more: those that go on have counted until now. So sums never fall:
 * a row that is read late may be of before. */
static __always_inline void settle_sleeper(struct task_struct *task)
{
	u64 key = (u64)task, since, slept, *sum;
	struct nap *nap = bpf_map_lookup_elem(&naps, &key);
	struct proc *proc;

	since = asleep_since(nap);
	slept = asleep_for(task, nap);
	if (!since || __sync_val_compare_and_swap(&nap->since_ns, since, 0) != since)
		return;
	if (nap->kind == NAP_STORAGE)
		leave_to_others(key, slept, 0);
	proc = find_proc(nap->tgid);
	sum = proc ? sum_of(&proc->gone, nap->kind) : NULL;
	if (sum)
		atomic_add(sum, slept);
}

SEC("?iter/task")
int switch_sleepers(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task && waits_end)
		settle_sleeper(task);
	else if (task)
		note_sleeper(task);
	return 0;
}
