// SPDX-License-Identifier: GPL-2.0-only
/*
 * cpu_stack.bpf.c - which code uses CPU time (--stacks=cpu): samples of user stacks at random
 * times.
 *
 * Each CPU that runs threads of the run has a timer, and samples the thread that it interrupts. The
 * times are random. A tick would not do: a program that wakes up for 2 ms each 20 ms is always at
 * the same place when one comes. A tick only begins the timer, so that context switches cost
 * nothing. The timer ends when it has met no thread of the run 128 times in a row, 1.3 s at first.
 *
 * A sample has the weight of what its thread has used since the one before. So weights never add up
 * to more than was used, and no timer need come in time. Two things are not sampled: what a thread
 * used beyond 16 mean gaps, in pieces that no timer met; and what it used after its last sample.
 *
 * Example: a thread computes for 12 ms, and is sampled then with weight 12 ms. It sleeps for a
 * second, computes for 3 ms, and ends: of 15 ms, 3 are not sampled.
 *
 * When samples are taken again after a time without, what a thread has used meanwhile is nobody's:
 * it is as if it was seen for the first time.
 *
 * In an audit, threads of the jobs that the loader has marked are sampled, and each job has gaps of
 * its own: a timer expires as often as for the job that it met last. If a tick meets one with
 * shorter gaps, the timer is set anew. If the timer meets one with longer gaps, that is sampled
 * only once it has used half of its mean.
 */
#include "sched_clock.bpf.h"
#include "stack_sample.bpf.h"
#include "usage.bpf.h"

enum {
	MISSES = 128, /* of a timer in turn, after which it ends */
	LATE = 8,     /* times the mean: then a tick samples, as where softirqs have threads (RT) */
	KNOWN = 16,   /* times the mean: what a sample stands for at most */
};

/* Of a thread: its CPU time at its last sample, and when that was; 0: nothing is known yet. */
struct sampled {
	u64 cpu_ns, at_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sampled);
} sampled SEC(".maps");

/* Of a CPU. */
struct cpu_sampler {
	struct bpf_timer timer;
	u32 runs;
	u32 misses;  /* in turn */
	u32 busy;    /* 1: it samples, which a tick may interrupt */
	u32 begun;   /* 1: it has run, since samples are taken */
	u64 samples; /* in an audit: as samples_of() the job that it met last */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_MAX_CPUS);
	__type(key, u32);
	__type(value, struct cpu_sampler);
} cpu_samplers SEC(".maps");

/* The first tick of the machine that was seen. */
static u64 first_tick_ns;

/* j: the job of an audit; NULL in a run. */
static __always_inline u64 samples_from(struct wire_sampled_job *j)
{
	return j ? j->from_ns : growth.from_ns;
}

/* Returns how many there were, as the gaps are long by: see wire_stack_cpu_mean(). */
static __always_inline u64 samples_of(struct wire_sampled_job *j)
{
	return j ? j->cpu_samples * WIRE_STACK_OF_JOBS : growth.cpu_samples;
}

static __always_inline void count_sample(struct wire_sampled_job *j)
{
	atomic_add(j ? &j->cpu_samples : &growth.cpu_samples, 1);
}

static __always_inline void count_lost(struct wire_sampled_job *j)
{
	atomic_add(j ? &j->cpu_lost : &growth.cpu_lost, 1);
}

/* A thread is seen for the first time. What it used before we looked does not count. */
static __always_inline void begin_thread(struct wire_sampled_job *j, struct sampled *last,
					 struct task_struct *task, u64 cpu, u64 now)
{
	const u64 started = BPF_CORE_READ(task, start_time), from_ns = samples_from(j);
	const u64 looked_ns = first_tick_ns > from_ns ? first_tick_ns : from_ns;
	const bool is_ours = started >= looked_ns;

	last->cpu_ns = is_ours ? 0 : cpu;
	last->at_ns = is_ours ? started : now;
}

/*
 * Returns whether the thread was in the kernel when it was interrupted: in a system call or in a
 * page fault. Its registers at the end of its stack are those of the first entry: of the interrupt
 * itself, if that came in user mode. Only those of a system call have a number of one. Before them
 * is the address that tells entries for page faults and for interrupts apart.
 */
static __always_inline bool was_in_kernel(const struct wire_stack *s, struct task_struct *task)
{
#ifdef __TARGET_ARCH_x86
	const struct pt_regs *regs = (const void *)s->regs;
	u64 entry = 0;

	if ((s64)regs->orig_ax >= 0)
		return true;
	bpf_probe_read_kernel(&entry, sizeof(entry),
			      (void *)bpf_task_pt_regs(task) - sizeof(entry));
	return entry - config.fault_entry < config.fault_entry_bytes;
#else
	return false;
#endif
}

static __always_inline void take_cpu_sample(struct wire_sampled_job *j, struct sampled *last,
					    struct task_struct *task, const struct mm_rss *m,
					    u64 cpu, u64 now)
{
	const u64 most = KNOWN * wire_stack_cpu_mean(samples_of(j));
	u32 end, n = walk_python(task, m->key, program_of(task, m), PYTHON_OF_CPU, &end);
	struct wire_stack *s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);

	count_sample(j);
	if (!s) {
		count_lost(j);
	} else {
		fill_stack(s, task, m, PYTHON_OF_CPU, n, end);
		s->kind = WIRE_STACK_CPU;
		s->in_kernel = was_in_kernel(s, task);
		s->run = j ? j->run : 0;
		s->weight = cpu - last->cpu_ns;
		if (s->weight > most)
			s->weight = most;
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
static __always_inline struct sampled *sampled_of(struct wire_sampled_job *j,
						  struct task_struct *task)
{
	struct sampled *last =
		bpf_task_storage_get(&sampled, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!last) {
		count_sample(j);
		count_lost(j);
	}
	return last;
}

/* Samples the thread that was interrupted, if it has used so much since its last sample. */
outlined void sample_thread(struct wire_sampled_job *j, u64 least)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct sampled *last = sampled_of(j, task);
	const struct mm_rss *m;
	u64 cpu, now;

	if (!last)
		return;
	now = bpf_ktime_get_ns();
	refresh_sched_clock();
	cpu = ran(task);
	if (!last->at_ns || last->at_ns < samples_from(j))
		begin_thread(j, last, task, cpu, now);
	if ((s64)(cpu - last->cpu_ns) < (s64)least)
		return;
	/* One that ends has no stack any more. */
	m = find_mm((u64)BPF_CORE_READ(task, mm));
	if (m)
		take_cpu_sample(j, last, task, m, cpu, now);
}

/* Returns whether the thread that was interrupted is sampled. Sets *j to its job in an audit. */
static __always_inline bool is_run_here(struct wire_sampled_job **j)
{
	const struct proc *proc = find_proc(current_id() >> 32);
	u32 job;

	*j = NULL;
	if (!is_counted(proc))
		return false;
	if (!config.audit)
		return true;
	job = proc->job;
	if (sampled_run(job))
		*j = bpf_map_lookup_elem(&sampled_jobs, &job);
	return *j;
}

static __always_inline struct cpu_sampler *sampler_here(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpu_samplers, &cpu);
}

static __always_inline void rest(struct cpu_sampler *c)
{
	const u64 samples = config.audit ? c->samples : growth.cpu_samples;
	const u64 gap = wire_stack_cpu_gap(samples, bpf_get_prandom_u32());

	if (bpf_timer_start(&c->timer, gap, BPF_F_TIMER_CPU_PIN) &&
	    bpf_timer_start(&c->timer, gap, 0))
		c->runs = 0;
}

/* Returns what a thread must have used that the timer meets. */
static __always_inline u64 least_of(const struct cpu_sampler *c, struct wire_sampled_job *j)
{
	const u64 mean = wire_stack_cpu_mean(samples_of(j));

	return j && wire_stack_cpu_mean(c->samples) < mean ? mean / 2 : 1;
}

static int sampler_expires(void *map, u32 *cpu, struct cpu_sampler *c)
{
	struct cpu_sampler *here = sampler_here();
	struct wire_sampled_job *j;

	if (growth.from_ns == WIRE_NO_SAMPLES) {
		c->runs = c->begun = 0;
		return 0;
	}
	c->misses = is_run_here(&j) ? 0 : c->misses + 1;
	if (here && !c->misses) {
		here->busy = 1;
		sample_thread(j, least_of(c, j));
		here->busy = 0;
		c->samples = samples_of(j);
	}
	/* The kernel may have moved it to a CPU that has its own. */
	if (c->misses < MISSES && c == here)
		rest(c);
	else
		c->runs = 0;
	return 0;
}

static __always_inline void begin_sampler(struct cpu_sampler *c)
{
	if (c->runs || __sync_val_compare_and_swap(&c->runs, 0, 1))
		return;
	c->begun = 1;
	c->misses = 0;
	c->samples = 0;
	bpf_timer_init(&c->timer, &cpu_samplers, CLOCK_MONOTONIC); /* fails but the first time */
	if (bpf_timer_set_callback(&c->timer, sampler_expires))
		c->runs = 0;
	else
		rest(c);
}

/* Not to wait as long as for the job before. */
static __always_inline void hurry(struct cpu_sampler *c, struct wire_sampled_job *j)
{
	const u64 samples = samples_of(j);

	if (wire_stack_cpu_mean(samples) >= wire_stack_cpu_mean(c->samples))
		return;
	c->samples = samples;
	rest(c);
}

/*
 * It takes none of the arguments: any timer will do. What else runs on a CPU begins its first
 * sampler, too: a thread that keeps time with the ticks may be there at none.
 */
SEC("?tp_btf/hrtimer_expire_entry")
int sample_cpu(void *ctx)
{
	struct cpu_sampler *here = sampler_here();
	struct wire_sampled_job *j;
	bool is_ours;

	if (!first_tick_ns)
		first_tick_ns = bpf_ktime_get_ns();
	if (!here || here->busy)
		return 0;
	if (growth.from_ns == WIRE_NO_SAMPLES) {
		here->begun = 0;
		return 0;
	}
	is_ours = is_run_here(&j);
	if (is_ours || !here->begun)
		begin_sampler(here);
	if (j)
		hurry(here, j);
	if (is_ours)
		sample_thread(j, LATE * wire_stack_cpu_mean(samples_of(j)));
	return 0;
}
