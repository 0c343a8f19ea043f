// SPDX-License-Identifier: GPL-2.0-only
/*
 * cpu_stack.bpf.c - which code uses CPU time (--stacks=cpu): samples of user stacks at ticks.
 *
 * It looks when timers expire, as curve.bpf.c does and for the same reasons: that wakes no CPU and
 * costs nothing at a context switch. A second event of its own, at 97 Hz on each CPU, would do
 * both.
 *
 * A thread is sampled at the first tick after a random amount of CPU time, so that a program that
 * keeps time with the ticks does not hide. The sample has the weight of all that the thread has
 * used since the one before: weights never add up to more than was used, whatever the gaps are, and
 * no tick need come in time. What a thread used after its last sample is nobody's.
 *
 * Example: a thread computes for 12 ms, and is sampled at a tick with weight 12 ms. It sleeps for a
 * second, computes for 3 ms, and ends: of 15 ms, 3 are not sampled.
 */
#include "sched_clock.bpf.h"
#include "stack_sample.bpf.h"
#include "usage.bpf.h"

/* Of a thread: its CPU time at its last sample, when that was, and what is between it and the
 * next; 0: nothing is known yet. */
struct sampled {
	u64 cpu_ns, at_ns, gap_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sampled);
} sampled SEC(".maps");

/* The first tick of the machine that was seen. */
static u64 first_tick_ns;

/* Returns how much CPU time comes before the next sample. */
static __always_inline u64 choose_cpu_gap(u64 samples)
{
	return wire_stack_cpu_gap(samples, bpf_get_prandom_u32());
}

/* A thread is seen for the first time. What it used before we looked does not count. */
static __always_inline void begin_thread(struct sampled *last, struct task_struct *task, u64 cpu,
					 u64 now)
{
	const u64 started = BPF_CORE_READ(task, start_time);
	const bool is_ours = started >= first_tick_ns;

	last->cpu_ns = is_ours ? 0 : cpu;
	last->at_ns = is_ours ? started : now;
	last->gap_ns = choose_cpu_gap(growth.cpu_samples);
}

static __always_inline void take_cpu_sample(struct sampled *last, struct task_struct *task,
					    const struct mm_rss *m, u64 cpu, u64 now)
{
	u32 end, n = walk_python(task, m->key, program_of(task, m), PYTHON_OF_TICK, &end);
	struct wire_stack *s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);

	last->gap_ns = choose_cpu_gap(atomic_add(&growth.cpu_samples, 1));
	if (!s) {
		atomic_add(&growth.cpu_lost, 1);
	} else {
		fill_stack(s, task, m, PYTHON_OF_TICK, n, end);
		s->kind = WIRE_STACK_CPU;
		s->weight = cpu - last->cpu_ns;
		s->since_ns = last->at_ns;
		s->late = s->first_epoch = s->epoch = 0;
		s->time_ns = now;
		submit_sample(s);
	}
	last->cpu_ns = cpu;
	last->at_ns = now;
}

static __always_inline bool is_counted(const struct proc *proc)
{
	return proc && !proc->waiting && !tree_of(proc->job)->finished;
}

/* The kernel allocates without waiting, and may fail: a sample could have been due. */
static __always_inline struct sampled *sampled_of(struct task_struct *task)
{
	struct sampled *last =
		bpf_task_storage_get(&sampled, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!last) {
		atomic_add(&growth.cpu_samples, 1);
		atomic_add(&growth.cpu_lost, 1);
	}
	return last;
}

/* It takes none of the arguments: any timer will do. */
SEC("?tp_btf/hrtimer_expire_entry")
int sample_cpu(void *ctx)
{
	struct task_struct *task;
	const struct mm_rss *m;
	struct sampled *last;
	u64 cpu, now;

	if (!first_tick_ns)
		first_tick_ns = bpf_ktime_get_ns();
	if (!is_counted(find_proc(current_id() >> 32)))
		return 0;
	task = (void *)bpf_get_current_task_btf();
	last = sampled_of(task);
	if (!last)
		return 0;
	now = bpf_ktime_get_ns();
	refresh_sched_clock();
	cpu = ran(task);
	if (!last->gap_ns)
		begin_thread(last, task, cpu, now);
	if ((s64)(cpu - last->cpu_ns) < (s64)last->gap_ns)
		return 0;
	/* One that ends has no stack any more. */
	m = find_mm((u64)BPF_CORE_READ(task, mm));
	if (m)
		take_cpu_sample(last, task, m, cpu, now);
	return 0;
}
