/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_stack.bpf.h - which code allocates on GPUs (--stacks): for gpu_call.bpf.c, samples of user
 * stacks as calls return that have allocated. The stack is then the caller's: the address that the
 * kernel had put in the place of the caller's, to see the return, is gone from it.
 *
 * All that is allocated has a place in growth.gpu_grown, from 0 on, and each checkpoint tells how
 * far that has come: so a phase has exactly what lies between its two checkpoints.
 *
 * A large allocation, of a quarter of the mean gap and more, is always sampled, with its own bytes.
 * (Were the gap itself the bound, those just below it would be what ends nearly each gap, and have
 * the bytes of the others.) Of small ones, each thread takes a sample after a random number of
 * bytes, with the weight of all small ones since the one before. Its first and its last one have a
 * place each. A phase that began between the two has only the last one of it for certain: `late`.
 *
 * Example, 64 KiB a gap: 8 KiB, a checkpoint, 4 KiB, 1 MiB, and 12 KiB, at which a sample is due.
 * The MiB is one sample. The other has a weight of 24 KiB, and `late` is 12: the phase that began
 * at the checkpoint has 1 MiB and 12 KiB by samples, and 4 KiB are (unsampled) there.
 */
#ifndef QPROF_GPU_STACK_BPF_H
#define QPROF_GPU_STACK_BPF_H

#include "gpu_ledger.bpf.h"
#include "stack_sample.bpf.h"

/*
 * What a thread knows of what it has allocated. No two programs at uprobes are within each other,
 * so nobody else writes to it. The sample is here since the stack has no room for it: on 6.1 the
 * frames of all nested calls share 512 bytes.
 */
struct gpu_growing {
	u64 due, at;	   /* bytes of the call that returns, and their place; 0: none */
	u64 left;	   /* bytes until the next sample; 0: not chosen yet */
	u64 weight, first; /* of small ones since the last sample, and the place of the first */
	u64 program;	   /* that allocated them */
	u64 sample_weight, sample_first; /* the same of the sample that is being taken */
	u32 python_end, reserved;	 /* enum wire_python_end of its frames */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct gpu_growing);
} growing_on_gpu SEC(".maps");

/* A call has allocated. Memory of the host, which is only pinned, does not count. */
static __always_inline void tell_gpu_growth(const struct gpu_live *live)
{
	struct gpu_growing *g;
	u64 at;

	if (!config.stacks || config.audit || live->place == WIRE_GPU_PINNED || !live->bytes)
		return;
	at = atomic_add(&growth.gpu_grown, live->bytes);
	g = bpf_task_storage_get(&growing_on_gpu, bpf_get_current_task_btf(), NULL,
				 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!g) {
		atomic_add(&growth.gpu_samples, 1);
		atomic_add(&growth.gpu_lost, 1);
		return;
	}
	g->due = live->bytes;
	g->at = at;
}

/*
 * The frames of Python have one place on each CPU. Where the kernel is preempted, another thread
 * may come by while it is in use: then its frames are unreadable.
 */
static __always_inline void take_gpu_sample(struct gpu_growing *g, struct task_struct *task,
					    const struct mm_rss *m, u64 bytes)
{
	const u32 event = PYTHON_OF_GPU;
	struct python_frames *frames = bpf_map_lookup_elem(&python_frames, &event);
	const bool is_free = frames && !__sync_lock_test_and_set(&frames->busy, 1);
	struct wire_stack *s;
	u32 n = 0;

	g->python_end = find_python(task, m->key) ? WIRE_PYTHON_UNREADABLE : WIRE_PYTHON_NONE;
	if (is_free)
		n = walk_python(task, m->key, program_of(task, m), event, &g->python_end);
	s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);
	atomic_add(&growth.gpu_samples, 1);
	if (!s) {
		atomic_add(&growth.gpu_lost, 1);
	} else {
		fill_stack(s, task, m, event, n, g->python_end);
		s->kind = WIRE_STACK_GPU;
		s->weight = g->sample_weight;
		s->late = bytes;
		s->first_epoch = g->sample_first;
		s->epoch = g->at;
		s->since_ns = 0;
		submit_sample(s);
	}
	if (is_free)
		__sync_lock_test_and_set(&frames->busy, 0);
}

/* Returns true if a sample is due, once so many bytes were allocated at g->at. */
static __always_inline bool add_gpu_growth(struct gpu_growing *g, u64 program, u64 bytes)
{
	const u64 mean = wire_stack_mean(WIRE_STACK_STEP, growth.gpu_samples, WIRE_STACK_LEVEL);

	if (g->program != program) { /* a thread outlives an exec */
		g->program = program;
		g->weight = g->left = 0;
	}
	g->sample_weight = bytes;
	g->sample_first = g->at;
	if (bytes >= mean / 4)
		return true;
	if (!g->weight)
		g->first = g->at;
	if (!g->left)
		g->left = random_gap(mean);
	g->weight += bytes;
	if (g->left > bytes) {
		g->left -= bytes;
		return false;
	}
	g->sample_weight = g->weight;
	g->sample_first = g->first;
	g->weight = 0;
	g->left = random_gap(mean);
	return true;
}

/* Comes last in the program: then the verifier has little to remember. Inlined: see the stack. */
static __always_inline int sample_gpu_growth(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct gpu_growing *g = bpf_task_storage_get(&growing_on_gpu, task, NULL, 0);
	const struct mm_rss *m;
	u64 bytes;

	if (!g || !g->due)
		return 0;
	bytes = g->due;
	g->due = 0;
	if (growth.from_ns == WIRE_NO_SAMPLES) {
		g->weight = 0;
		return 0;
	}
	m = find_mm((u64)BPF_CORE_READ(task, mm));
	if (!m) { /* its process is not counted */
		atomic_add(&growth.gpu_samples, 1);
		atomic_add(&growth.gpu_lost, 1);
		return 0;
	}
	if (add_gpu_growth(g, program_of(task, m), bytes))
		take_gpu_sample(g, task, m, bytes);
	return 0;
}

#endif
