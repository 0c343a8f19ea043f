// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpu_wait.bpf.c - time in which threads were in calls that return once a GPU is done.
 *
 * gpu_call.bpf.c sees these calls begin and return. A thread in there spins, sleeps, or waits for a
 * CPU. Waits for a CPU are in cpu_wait_ns, as anywhere else; the rest is gpu_wait_ns, and the part
 * in which the thread ran is gpu_wait_cpu_ns too, since cpu_ns has it already. What it sleeps in
 * there is no sleep and no lock of waits.bpf.c.
 *
 * But a copy from memory that is mapped from a file may have to read the file first: that is a wait
 * for storage (known with --waits alone), and reclaim is reclaim in there, too.
 *
 * Example: a copy takes 10 ms, of which the thread ran 2, waited for a CPU 1, slept until a page
 * was read 3 and until the GPU had it 4: gpu_wait_ns 6 ms, gpu_wait_cpu_ns 2 ms, storage_wait_ns 3.
 *
 * A call that goes on at a checkpoint is read there, in the walk over threads (usage.bpf.c).
 */
#include "gpu_wait.bpf.h"
#include "pids.bpf.h"
#include "sched_clock.bpf.h"
#include "usage.bpf.h"
#include "waits.bpf.h"

u32 gpu_waited;

int begin_gpu_wait(u64 stack)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct proc *proc = find_proc(current_id() >> 32);
	struct gpu_wait wait = {.stack = stack};
	u64 key = (u64)task;

	if (!proc || proc->waiting)
		return 0;
	wait.since_ns = bpf_ktime_get_ns();
	wait.ran_ns = ran(task);
	wait.waited_ns = cpu_wait_of(task);
	if (bpf_map_update_elem(&gpu_waits, &key, &wait, BPF_ANY))
		count(threads_unread);
	gpu_waited = 1;
	return 0;
}

/* Returns for how long the thread has waited for other things, in a wait for them that goes on. */
static __always_inline u64 waits_for_others(struct task_struct *task)
{
	u64 key = (u64)task, slept = 0;
	struct nap *nap = config.waits ? bpf_map_lookup_elem(&naps, &key) : NULL;

	if (nap && nap->kind != NAP_GPU)
		slept = asleep_for(task, nap);
	return slept + queued_for(task);
}

static __always_inline u64 waited(const struct gpu_wait *wait, struct task_struct *task)
{
	const u64 others = wait->others_ns + cpu_wait_of(task) - wait->waited_ns;

	return not_negative(bpf_ktime_get_ns() - wait->since_ns - others);
}

static __always_inline u64 ran_meanwhile(const struct gpu_wait *wait, struct task_struct *task,
					 u64 whole)
{
	const u64 cpu = not_negative(ran(task) - wait->ran_ns - wait->others_ran_ns);

	return cpu < whole ? cpu : whole;
}

/* Out of the map first: a checkpoint may read it meanwhile, and nothing is to count twice. */
int end_gpu_wait(struct proc *proc, u64 task)
{
	const struct gpu_wait *wait = bpf_map_lookup_elem(&gpu_waits, &task);
	u64 whole, cpu;

	if (!wait)
		return 0;
	whole = waited(wait, (struct task_struct *)task);
	cpu = ran_meanwhile(wait, (struct task_struct *)task, whole);
	bpf_map_delete_elem(&gpu_waits, &task);
	if (!proc)
		return 0;
	atomic_add(&proc->gone.gpu_wait_ns, whole);
	atomic_add(&proc->gone.gpu_wait_cpu_ns, cpu);
	return 0;
}

int add_gpu_wait(struct wire_usage *sum, u64 task)
{
	const struct gpu_wait *wait = bpf_map_lookup_elem(&gpu_waits, &task);
	u64 whole;

	if (!sum || !wait)
		return 0;
	whole = waited(wait, (struct task_struct *)task);
	whole = not_negative(whole - waits_for_others((struct task_struct *)task));
	sum->gpu_wait_ns += whole;
	sum->gpu_wait_cpu_ns += ran_meanwhile(wait, (struct task_struct *)task, whole);
	return 0;
}
