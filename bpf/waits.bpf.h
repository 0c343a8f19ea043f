/* SPDX-License-Identifier: GPL-2.0-only */
/* waits.bpf.h - what threads sleep for, if the user asked: see waits.bpf.c. */
#ifndef QPROF_WAITS_BPF_H
#define QPROF_WAITS_BPF_H

#include "pids.bpf.h"
#include "sched_clock.bpf.h"
#include "state.bpf.h"

enum nap_kind {
	NAP_SLEEP,
	NAP_STORAGE,
	NAP_LOCK,
	NAP_RECLAIM, /* stall.bpf.c counts it */
	NAP_GPU,     /* gpu_wait.bpf.c does */
};

/* The sleep of a thread. */
struct nap {
	u64 since_ns; /* 0: it is awake */
	u32 kind;     /* enum nap_kind */
	u32 tgid;
	u64 waited_ns;	/* for a CPU, before it: see slept_until() */
	u64 ready_ns;	/* since when it waits for a CPU; 0: it does not */
	u64 queue;	/* in which: a struct cfs_rq */
	u64 stopped_ns; /* for how long that had been stopped by then */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_THREADS);
	__type(key, u64); /* address of the task */
	__type(value, struct nap);
} naps __weak SEC(".maps");

/* Since when sleeps count: CLOCK_MONOTONIC; 0: always; WIRE_NO_WAITS: none does now. */
extern u64 waits_from_ns;

static __always_inline bool waits_count(void)
{
	return *(volatile u64 *)&waits_from_ns != WIRE_NO_WAITS;
}

/* Returns since when the thread sleeps; 0: it does not, or its sleep does not count: it was noted
 * before sleeps were switched off, and nobody saw its end. */
static __always_inline u64 asleep_since(const struct nap *nap)
{
	const u64 since = nap ? *(volatile u64 *)&nap->since_ns : 0;

	return since >= *(volatile u64 *)&waits_from_ns ? since : 0;
}

/* Whether the kernel says for how long quotas stop its run queues. */
static __always_inline bool tells_stops(struct task_struct *task)
{
	return bpf_core_field_exists(task->se.cfs_rq) &&
	       bpf_core_field_exists(((struct cfs_rq *)0)->throttled_clock_self);
}

static __always_inline u64 stopped_ns(u64 queue)
{
	struct cfs_rq *q = (struct cfs_rq *)queue;
	u64 since;

	if (!bpf_core_field_exists(q->throttled_clock_self))
		return 0;
	since = BPF_CORE_READ(q, throttled_clock_self);
	return BPF_CORE_READ(q, throttled_clock_self_time) + (since ? age_of(since) : 0);
}

/* Returns where a sleep counts; NULL: elsewhere. */
static __always_inline u64 *sum_of(struct wire_usage *usage, u32 kind)
{
	switch (kind) {
	case NAP_SLEEP:
		return &usage->sleep_ns;
	case NAP_STORAGE:
		return &usage->storage_wait_ns;
	case NAP_LOCK:
		return &usage->lock_wait_ns;
	}
	return NULL;
}

/* Returns for how long the thread has had no CPU without sleeping. */
static __always_inline u64 queued_for(struct task_struct *t)
{
	u64 since = 0;

	if (bpf_core_field_exists(t->sched_info.last_queued))
		since = BPF_CORE_READ(t, sched_info.last_queued);
	return since ? age_of(since) : 0;
}

/*
 * Returns when the sleep of a thread ended, if no event told. A program is not run for an event in
 * an interrupt that came while it ran; and one 6.18 runs none in the context of its init process.
 * The kernel knows since when the thread has waited for a CPU; or, if it has one, since when, and
 * how long it had waited for that.
 */
static __always_inline u64 slept_until(struct task_struct *t, const struct nap *nap, u64 now)
{
	u64 ago = queued_for(t), arrived;

	if (!ago && bpf_core_field_exists(t->sched_info.last_arrival)) {
		arrived = BPF_CORE_READ(t, sched_info.last_arrival);
		ago = age_of(arrived) + not_negative(cpu_wait_of(t) - nap->waited_ns);
	}
	return now - ago > nap->since_ns ? now - ago : nap->since_ns;
}

/* Returns for how long the thread has slept in the sleep that it is noted in; 0: in none. */
static __always_inline u64 asleep_for(struct task_struct *t, const struct nap *nap)
{
	const u64 since = asleep_since(nap), now = bpf_ktime_get_ns();

	if (!since)
		return 0;
	if (BPF_CORE_READ(t, __state) == TASK_RUNNING)
		return not_negative(slept_until(t, nap, now) - since);
	return not_negative(now - since);
}

/* Adds to *usage, which nobody else writes, what a thread waits for now: it sleeps, or it has no
 * CPU. left: it has exited, and how it waits for a CPU to end does not count. */
static __always_inline void add_waiting(struct wire_usage *usage, u64 task, bool left)
{
	struct task_struct *t = (struct task_struct *)task;
	struct nap *nap = bpf_map_lookup_elem(&naps, &task);
	u64 slept = asleep_for(t, nap), *sum;

	if (slept) {
		sum = sum_of(usage, nap->kind);
		if (sum)
			*sum += slept;
	}
	if (!left)
		usage->cpu_wait_ns += queued_for(t);
}

/* Comes as a thread exits: a sleep that it is noted in is over, though no event told. */
static __always_inline void leave_nap(struct wire_usage *gone, struct task_struct *t)
{
	u64 key = (u64)t, *sum;
	struct nap *nap = bpf_map_lookup_elem(&naps, &key);
	const u64 slept = asleep_for(t, nap);

	if (!nap || !slept)
		return;
	nap->since_ns = 0;
	sum = sum_of(gone, nap->kind);
	if (sum)
		atomic_add(sum, slept);
}

/* A thread that sleeps as its process is tracked: its sleep counts from now on, as what it is not
 * known to be. One that has begun to exit may be a zombie: nobody would say that it wakes up. */
static __always_inline void note_sleeping(struct task_struct *task)
{
	struct nap nap = {
		.since_ns = bpf_ktime_get_ns(),
		.tgid = tgid_of(task),
		.waited_ns = cpu_wait_of(task),
	};
	u64 key = (u64)task;

	if (BPF_CORE_READ(task, __state) == TASK_RUNNING || BPF_CORE_READ(task, flags) & PF_EXITING)
		return;
	nap.kind = BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait) ? NAP_STORAGE : NAP_SLEEP;
	bpf_map_update_elem(&naps, &key, &nap, BPF_NOEXIST);
}

#endif
