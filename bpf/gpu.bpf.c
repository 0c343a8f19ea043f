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
		short_loop(WIRE_GPU_PLACES, copy_next, &c);
	else
		__builtin_memset(to, 0, WIRE_GPU_PLACES * sizeof(*to));
}

/*
 * Returns what a sum is, and notes that a point says so. Another thread may change the sum before
 * that is noted, and then see no reason for a point: so this has to be asked of is_as_told() after.
 */
static __always_inline u64 tell_sum(const struct wire_gpu_amount *sum, u64 *told)
{
	const u64 held = *(volatile u64 *)&sum->held;

	__sync_lock_test_and_set(told, held);
	return held;
}

/* If so, whoever changes the sum later sees the note. */
static __always_inline bool is_as_told(const struct wire_gpu_amount *sum, u64 held)
{
	return *(volatile u64 *)&sum->held == held;
}

enum { POINT_TRIES = 64 };

struct pointing {
	struct wire_gpu_point *p;
	struct wire_gpu_sums *tree, *own;
	u64 points; /* of the tree, before the look */
};

static __always_inline void look(struct pointing *c)
{
	struct wire_gpu_sums *tree = c->tree, *own = c->own;
	struct wire_gpu_point *p = c->p;
	u64 highest;

	c->points = *(volatile u64 *)&tree->points;
	p->held = tell_sum(&tree->at[WIRE_GPU_ALL], &tree->told);
	p->pinned = tell_sum(&tree->at[WIRE_GPU_PINNED], &tree->told_pinned);
	if (own) {
		p->own_held = tell_sum(&own->at[WIRE_GPU_ALL], &own->told);
		p->own_pinned = tell_sum(&own->at[WIRE_GPU_PINNED], &own->told_pinned);
	}
	highest = __sync_lock_test_and_set(&tree->highest, p->held);
	if (highest > p->highest)
		p->highest = highest;
	p->h.time_ns = bpf_ktime_get_ns();
}

/* A step of bpf_loop(). Ends it if nothing has changed, and no other point was made meanwhile. */
static long try_point(u32 i, struct pointing *c)
{
	const struct wire_gpu_sums *tree = c->tree, *own = c->own;
	const struct wire_gpu_point *p = c->p;

	look(c);
	if (!is_as_told(&tree->at[WIRE_GPU_ALL], p->held) ||
	    !is_as_told(&tree->at[WIRE_GPU_PINNED], p->pinned))
		return 0;
	if (own && (!is_as_told(&own->at[WIRE_GPU_ALL], p->own_held) ||
		    !is_as_told(&own->at[WIRE_GPU_PINNED], p->own_pinned)))
		return 0;
	return __sync_bool_compare_and_swap(&c->tree->points, c->points, c->points + 1);
}

/* The look, its time and the count of points are one step, or are made again: so points that are
 * in order of time are in the order of what they say. */
static __always_inline void fill_point(struct wire_gpu_point *p, struct wire_gpu_sums *tree,
				       struct wire_gpu_sums *own)
{
	struct pointing c = {.p = p, .tree = tree, .own = own};

	p->highest = p->own_held = p->own_pinned = 0;
	short_loop(POINT_TRIES, try_point, &c);
	if (p->highest < p->held)
		p->highest = p->held;
	if (own)
		atomic_add(&own->points, 1);
}

/* If there is no room, the next point has the highest. */
int send_gpu_point(struct proc *proc, u32 tid)
{
	struct wire_gpu_sums *tree;
	struct wire_gpu_point *p;

	if (!proc)
		return 0;
	tree = gpu_of_tree(proc->job);
	if (!tree)
		return 0;
	p = bpf_ringbuf_reserve(&timeline, sizeof(*p), 0);
	if (!p) {
		count(lost_points);
		return 0;
	}
	fill_header(&p->h, WIRE_GPU_POINT, sizeof(*p), proc->job, proc->tgid, tid,
		    proc->started_ns);
	fill_point(p, tree, gpu_of_process(proc));
	bpf_ringbuf_submit(p, timeline_wakeup(p->h.time_ns));
	return 0;
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
	send_gpu_point(proc, tid);
	record = bpf_ringbuf_reserve(&control, sizeof(*record), 0);
	if (!record) {
		count(gpu.lost);
		return 0;
	}
	fill_header(&record->h, WIRE_GPU, sizeof(*record), proc->job, proc->tgid, tid,
		    proc->started_ns);
	record->why = why;
	record->processes = tree->processes;
	record->refused = why == WIRE_GPU_EXIT && own && own->refused;
	copy_sums(record->tree, tree, why == WIRE_GPU_CHECKPOINT);
	copy_sums(record->own, own, why == WIRE_GPU_CHECKPOINT);
	submit(record);
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
	tell_if_moved(proc, tree, own, proc->tgid);
	if (!ends)
		return 0;
	key.started_ns = proc->started_ns;
	key.tgid = proc->tgid;
	bpf_map_delete_elem(&gpu_processes, &key);
	return 0;
}

static const struct wire_gpu_sums none;

int move_gpu(struct proc *proc, u32 from_job, u32 job)
{
	struct wire_gpu_sums *own, *from, *to;

	if (!proc)
		return 0;
	own = gpu_of_process(proc);
	if (!own)
		return 0;
	bpf_map_update_elem(&gpu_trees, &job, &none, BPF_NOEXIST);
	from = gpu_of_tree(from_job);
	to = gpu_of_tree(job);
	if (!from || !to)
		return 0;
	_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < WIRE_GPU_PLACES; i++)
	{
		const u64 held = own->at[i].held;

		atomic_add(&from->at[i].held, -held);
		if (i == WIRE_GPU_ALL)
			add_to_tree(to, held);
		else
			add_to_sum(&to->at[i], held);
	}
	if (own->processes)
		atomic_add(&to->processes, 1);
	tell_if_moved(proc, to, own, proc->tgid);
	return 0;
}
