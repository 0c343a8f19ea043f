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
 * reclaim_ns is no CPU time.
 *
 * Example: a thread runs 2 ms, sleeps 5 ms in read(2) of a cold file, is woken, has a CPU 1 ms
 * later, and runs for 2 ms: cpu_ns 4, storage_wait_ns 5, cpu_wait_ns 1 ms.
 *
 * A sleep that goes on at a checkpoint is read there, in the walk over threads (usage.bpf.c).
 */
#include "pids.bpf.h"
#include "stall.bpf.h"
#include "usage.bpf.h"
#include "waits.bpf.h"

#define TASK_DEAD 0x80

/* The numbers of system calls. */
#if defined(__TARGET_ARCH_x86)
enum { FUTEX = 202 };
#else
enum { FUTEX = 98 };
#endif
enum { FUTEX_WAITV = 449, FUTEX_WAIT = 455 };

/* Returns the system call that a task is in, or anything else if it is in none. */
static __always_inline int syscall_of(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u64 number = 0;

#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_kernel(&number, sizeof(number), &regs->orig_ax);
#else
	bpf_probe_read_kernel(&number, sizeof(regs->syscallno), &regs->syscallno);
#endif
	return (int)number;
}

static __always_inline enum nap_kind kind_of(struct task_struct *task)
{
	u64 key = (u64)task;

	if (bpf_map_lookup_elem(&stalls, &key))
		return NAP_RECLAIM;
	if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
		return NAP_STORAGE;
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

	if (!find_proc(new.tgid))
		return;
	new.kind = kind_of(task);
	nap = bpf_map_lookup_elem(&naps, &key);
	if (nap)
		*nap = new;
	else if (bpf_map_update_elem(&naps, &key, &new, BPF_ANY))
		count(threads_unread);
}

static __always_inline void wake_up(struct task_struct *task, u64 now)
{
	u64 key = (u64)task, since;
	struct nap *nap = bpf_map_lookup_elem(&naps, &key);
	struct proc *proc;

	if (!nap || !nap->since_ns)
		return;
	since = nap->since_ns;
	nap->since_ns = 0;
	proc = find_proc(nap->tgid);
	if (!proc)
		return;
	switch (nap->kind) {
	case NAP_SLEEP:
		atomic_add(&proc->gone.sleep_ns, now - since);
		break;
	case NAP_STORAGE:
		atomic_add(&proc->gone.storage_wait_ns, now - since);
		break;
	case NAP_LOCK:
		atomic_add(&proc->gone.lock_wait_ns, now - since);
		break;
	}
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(task_switches, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	if (!preempt && prev_state != TASK_RUNNING && !(prev_state & TASK_DEAD) && prev->pid)
		fall_asleep(prev, bpf_ktime_get_ns());
	return 0;
}

/* The sleep ends as the task is made ready; what follows is a wait for a CPU. */
SEC("?tp_btf/sched_wakeup")
int BPF_PROG(task_wakes, struct task_struct *task)
{
	wake_up(task, bpf_ktime_get_ns());
	return 0;
}
