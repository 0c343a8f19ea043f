/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sched_clock.bpf.h - the clock of the scheduler, and with it a thread's CPU time up to now.
 *
 * The kernel adds to se.sum_exec_runtime at a tick or a switch. A thread that ends 0.9 ms after it
 * began has 0 there, and nobody adds the rest. The sum lacks the time since se.exec_start, which is
 * a reading of the run queue's clock. To know that time we need the same clock now. The run queue's
 * copy is as old as the sum; no helper reads the clock itself, sched_clock_cpu(); and
 * CLOCK_MONOTONIC runs at another speed.
 *
 * But a perf event of type PERF_COUNT_SW_CPU_CLOCK counts sched_clock_cpu() of its CPU: a read
 * notes the clock in hw.prev_count, and adds what has passed since the read before
 * (kernel/events/core.c, cpu_clock_event_update()). So the loader opens one on each CPU, without
 * sampling, and we read it, and then what it has noted. (Its count falls behind: whenever any perf
 * event comes to the CPU or goes, all of that CPU stand still for a microsecond.) The verifier
 * refuses such events to sleepable programs. They take CLOCK_MONOTONIC plus the difference of the
 * two clocks that another program found last.
 *
 * Example: the run queue's clock says 500 us and its clock_task 480 us (20 us of interrupts).
 * The thread has exec_start 100 us, so it had run for 380 us then. The event says that it is 900 us
 * now: 400 us later. sum_exec_runtime lacks 380 + 400 = 780 us.
 */
#ifndef QPROF_SCHED_CLOCK_BPF_H
#define QPROF_SCHED_CLOCK_BPF_H

#include "state.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, WIRE_MAX_CPUS);
	__type(key, u32);
	__type(value, u32);
} cpu_clocks __weak SEC(".maps");

/* Address of hw.prev_count of a CPU's event, which the map keeps alive; 0: there is none. */
extern u64 cpu_clock_at[WIRE_MAX_CPUS];
extern s64 cpu_clock_counted[WIRE_MAX_CPUS]; /* its count at the last look */

/* sched_clock_cpu() less CLOCK_MONOTONIC at the last look, and when that was; 0: never. */
extern s64 sched_clock_ahead;
extern u64 sched_clock_seen_ns;

enum {
	FRESH_LOOK_NS = 1000000000,
	QUICK_LOOK_NS = 20000, /* at most, if nothing comes between the two clocks */
};

/*
 * Looks at the clock; only in programs that may not sleep. An event that stands still is of a CPU
 * that was offline: the kernel does not start it again. Between the two clocks an interrupt may
 * come, or a hypervisor may stop the CPU, for milliseconds: threads that live shorter would seem to
 * use nothing. Then the look before is better, however old.
 */
static __always_inline void refresh_sched_clock(void)
{
	u32 cpu = bpf_get_smp_processor_id() & (WIRE_MAX_CPUS - 1);
	u64 at = cpu_clock_at[cpu], clock = 0, before, now;
	s64 counted;

	if (!at)
		return;
	before = bpf_ktime_get_ns();
	counted = bpf_perf_event_read(&cpu_clocks, BPF_F_CURRENT_CPU);
	if (counted < 0 || counted == cpu_clock_counted[cpu] ||
	    bpf_probe_read_kernel(&clock, sizeof(clock), (void *)at))
		return;
	cpu_clock_counted[cpu] = counted;
	now = bpf_ktime_get_ns();
	if (now - before > QUICK_LOOK_NS && sched_clock_seen_ns)
		return;
	sched_clock_ahead = clock - now;
	sched_clock_seen_ns = now;
}

/*
 * Returns for how long the scheduler's clock has gone on since that reading of it; 0: not known,
 * for nobody has looked at it. The error is what CLOCK_MONOTONIC has drifted from it since the last
 * look: 60 ns a second as measured, more while that is corrected.
 */
static __always_inline u64 age_of(u64 clock)
{
	const s64 age = bpf_ktime_get_ns() + sched_clock_ahead - clock;

	return age > 0 && sched_clock_seen_ns ? age : 0;
}

/*
 * Returns for how long a running thread has had its CPU since the clock of its run queue was
 * brought up to date. Each tick does that. If more has passed, a hypervisor has had the CPU, and
 * the tick that was missed comes after us; it may be what we were called by. The kernel takes such
 * a time off (update_rq_clock_task(), CONFIG_PARAVIRT_TIME_ACCOUNTING), so we must not add it.
 */
static __always_inline u64 run_since(u64 clock)
{
	const u64 age = age_of(clock);

	return age < config.unadded_ns ? age : config.unadded_ns;
}

/*
 * Returns what a running thread has used since the kernel last added to its sum. Another CPU may be
 * adding now: it sets clock, clock_task, exec_start and the sum, in this order. We read them in the
 * opposite order (the caller reads the sum first), so a torn reading is too small, never too large.
 */
static __always_inline u64 not_yet_added(struct task_struct *t)
{
	u64 start, then, clock;
	struct rq *rq;
	s64 ran;

	if (!sched_clock_seen_ns || !BPF_CORE_READ(t, on_cpu))
		return 0;
	start = BPF_CORE_READ(t, se.exec_start);
	if (!bpf_core_field_exists(t->se.cfs_rq))
		return run_since(start);
	rq = BPF_CORE_READ(t, se.cfs_rq, rq);
	if (BPF_CORE_READ(rq, curr) != t)
		return 0;
	then = BPF_CORE_READ(rq, clock_task);
	clock = BPF_CORE_READ(rq, clock);
	ran = then - start + run_since(clock);
	return ran > 0 ? ran : 0;
}

/* How long a thread has waited for a CPU, with CONFIG_SCHED_INFO; a wait that goes on is added when
 * it ends, but with --waits: see add_waiting(). */
static __always_inline u64 cpu_wait_of(struct task_struct *t)
{
	return bpf_core_field_exists(t->sched_info.run_delay)
		       ? BPF_CORE_READ(t, sched_info.run_delay)
		       : 0;
}

#endif
