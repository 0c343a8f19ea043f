/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu.bpf.h - memory that programs have allocated on GPUs, by process and by tree. gpu_call.bpf.c
 * sees the calls. Nothing here runs before the first one.
 *
 * Invariant: an amount of a tree is the sum of that amount over the processes of its job, but for
 * what is being added to both at this instant.
 *
 * A sum is one number, to which each call adds in one atomic step, and the step says what the sum
 * is then: so peaks are those of one order of all calls. They are noted when a sum rises. A
 * checkpoint takes the step's peak and leaves what is held now, from which the next step begins.
 *
 * A point of the curve takes the highest since the last point in the same way, so no spike is lost
 * between two points, however short.
 */
#ifndef QPROF_GPU_BPF_H
#define QPROF_GPU_BPF_H

#include "state.bpf.h"

enum { MAX_GPU_PROCESSES = 4096 };

/* A tgid is used again. */
struct gpu_process_key {
	u64 started_ns;
	u64 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_GPU_PROCESSES);
	__type(key, struct gpu_process_key);
	__type(value, struct wire_gpu_sums);
} gpu_processes __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_MAX_JOBS);
	__type(key, u32);
	__type(value, struct wire_gpu_sums);
} gpu_trees __weak SEC(".maps");

extern u32 gpu_used; /* 1: a process has made a call */

outlined struct wire_gpu_sums *gpu_of_process(const struct proc *proc)
{
	const struct gpu_process_key key = {.started_ns = proc->started_ns, .tgid = proc->tgid};

	return bpf_map_lookup_elem(&gpu_processes, &key);
}

outlined struct wire_gpu_sums *gpu_of_tree(u32 job)
{
	return bpf_map_lookup_elem(&gpu_trees, &job);
}

/* Adds bytes, which may be below 0, to one sum. Returns what it is then. */
static __always_inline u64 add_to_sum(struct wire_gpu_amount *sum, s64 bytes)
{
	const u64 held = atomic_add(&sum->held, bytes) + bytes;

	if (bytes <= 0)
		return held;
	if (held > *(volatile u64 *)&sum->step_peak)
		atomic_max(&sum->step_peak, held);
	if (held > *(volatile u64 *)&sum->peak) {
		atomic_max(&sum->peak, held);
		sum->peak_ns = bpf_ktime_get_ns();
	}
	return held;
}

/* The same of what a tree has on all devices. */
static __always_inline void add_to_tree(struct wire_gpu_sums *tree, s64 bytes)
{
	const u64 held = add_to_sum(&tree->at[WIRE_GPU_ALL], bytes);

	if (held > *(volatile u64 *)&tree->highest)
		atomic_max(&tree->highest, held);
}

/* A process numbers GPUs as it likes, so sums of one number may be of several GPUs if there are
 * several processes. */
static __always_inline void count_process(struct wire_gpu_sums *own, struct wire_gpu_sums *tree)
{
	if (!*(volatile u64 *)&own->processes && !__sync_lock_test_and_set(&own->processes, 1))
		atomic_add(&tree->processes, 1);
}

/* 256 KiB, and a part of the peak. */
static __always_inline bool has_moved_from(const struct wire_gpu_amount *sum, const u64 *told,
					   u64 points)
{
	const s64 moved = *(volatile u64 *)&sum->held - *(volatile u64 *)told;
	const u64 step = sum->peak >> point_shift(points);

	return (u64)(moved < 0 ? -moved : moved) >=
	       (step > WIRE_POINT_BYTES ? step : WIRE_POINT_BYTES);
}

/* Whether the curve wants a point. */
static __always_inline bool has_moved(const struct wire_gpu_sums *sums)
{
	return has_moved_from(&sums->at[WIRE_GPU_ALL], &sums->told, sums->points) ||
	       has_moved_from(&sums->at[WIRE_GPU_PINNED], &sums->told_pinned, sums->points);
}

/* Sends a struct wire_gpu_point. */
int send_gpu_point(struct proc *proc, u32 tid);

static __always_inline void tell_if_moved(struct proc *proc, const struct wire_gpu_sums *tree,
					  const struct wire_gpu_sums *own, u32 tid)
{
	if (has_moved(tree) || has_moved(own))
		send_gpu_point(proc, tid);
}

/* Sends a struct wire_gpu, and such a point. A tree that has made no call has none. */
int send_gpu(struct proc *proc, u32 tid, u32 why);
/* The process ends, or runs another program: the driver frees all that it held. */
int free_all_gpu(struct proc *proc, bool ends);
/* What the process holds is counted for that job from now on, no more for job 0. */
int move_gpu(struct proc *proc, u32 from_job, u32 job);

/* Comes right before the record of a checkpoint is reserved. */
static __always_inline void tell_gpu(struct proc *proc, u32 tid)
{
	if (*(volatile u32 *)&gpu_used)
		send_gpu(proc, tid, WIRE_GPU_CHECKPOINT);
}

#endif
