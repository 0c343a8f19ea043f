// SPDX-License-Identifier: GPL-2.0-only
/* gpu.bpf.c - tells what processes and trees hold on GPUs, and follows processes that end, run
 * another program, or join a job. */
#include "gpu.bpf.h"

u32 gpu_used;

/* The step that ends has the peak; the next begins with what is held now. */
static __always_inline void take_step(struct wire_gpu_amount *to, struct wire_gpu_amount *from)
{
	const u64 held = *(volatile u64 *)&from->held;
	const u64 step = __sync_lock_test_and_set(&from->step_peak, held);

	to->held = held;
	to->step_peak = step > held ? step : held;
	/* It may have risen between the two. */
	if (*(volatile u64 *)&from->held > held)
		atomic_max(&from->step_peak, *(volatile u64 *)&from->held);
	to->peak = from->peak > to->step_peak ? from->peak : to->step_peak;
	to->peak_ns = from->peak_ns;
}

struct copying {
	struct wire_gpu_amount *to;
	struct wire_gpu_sums *from;
	bool steps;
};

/* Steps of bpf_loop(), which the verifier goes through once. */
static long copy_next(u32 i, struct copying *c)
{
	if (i >= WIRE_GPU_PLACES)
		return 1;
	if (c->steps)
		take_step(&c->to[i], &c->from->at[i]);
	else
		c->to[i] = c->from->at[i];
	return 0;
}

static __always_inline void copy_sums(struct wire_gpu_amount *to, struct wire_gpu_sums *from,
				      bool steps)
{
	struct copying c = {to, from, steps};

	if (from)
		bpf_loop(WIRE_GPU_PLACES, copy_next, &c, 0);
	else
		__builtin_memset(to, 0, WIRE_GPU_PLACES * sizeof(*to));
}

int send_gpu(struct proc *proc, u32 tid, u32 why)
{
	struct wire_gpu_sums *tree, *own;
	struct wire_gpu *record;

	if (!proc)
		return 0;
	tree = gpu_of_tree(proc->job);
	own = gpu_of_process(proc);
	if (!tree || (why == WIRE_GPU_EXIT && !own))
		return 0;
	record = bpf_ringbuf_reserve(&control, sizeof(*record), 0);
	if (!record) {
		count(gpu.lost);
		return 0;
	}
	fill_header(&record->h, WIRE_GPU, sizeof(*record), proc->job, proc->tgid, tid,
		    proc->started_ns);
	record->why = why;
	record->refused = why == WIRE_GPU_EXIT && own && own->refused;
	copy_sums(record->tree, tree, why == WIRE_GPU_CHECKPOINT);
	copy_sums(record->own, own, why == WIRE_GPU_CHECKPOINT);
	bpf_ringbuf_submit(record, 0);
	return 0;
}

int free_all_gpu(struct proc *proc, bool ends)
{
	struct gpu_process_key key = {};
	struct wire_gpu_sums *tree, *own;

	if (!proc)
		return 0;
	own = gpu_of_process(proc);
	tree = gpu_of_tree(proc->job);
	if (!own || !tree)
		return 0;
	_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < WIRE_GPU_PLACES; i++)
	{
		const u64 held = __sync_lock_test_and_set(&own->at[i].held, 0);

		atomic_add(&tree->at[i].held, -held);
	}
	atomic_add(&tree->changes, 1);
	atomic_add(&own->generation, 1);
	own->agents = 0;
	own->refused = 0;
	if (!ends)
		return 0;
	key.started_ns = proc->started_ns;
	key.tgid = proc->tgid;
	bpf_map_delete_elem(&gpu_processes, &key);
	return 0;
}

static const struct wire_gpu_sums none;

int move_gpu(struct proc *proc, u32 job)
{
	struct wire_gpu_sums *own, *from, *to;

	if (!proc)
		return 0;
	own = gpu_of_process(proc);
	if (!own)
		return 0;
	bpf_map_update_elem(&gpu_trees, &job, &none, BPF_NOEXIST);
	from = gpu_of_tree(0);
	to = gpu_of_tree(job);
	if (!from || !to)
		return 0;
	_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < WIRE_GPU_PLACES; i++)
	{
		const u64 held = own->at[i].held;

		atomic_add(&from->at[i].held, -held);
		add_to_sum(&to->at[i], held);
	}
	return 0;
}
