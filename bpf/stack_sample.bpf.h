/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stack_sample.bpf.h - a sample of the running thread's stack: for stack.bpf.c, which takes them as
 * memory grows, and for cpu_stack.bpf.c, which takes them as CPU time is used.
 */
#ifndef QPROF_STACK_SAMPLE_BPF_H
#define QPROF_STACK_SAMPLE_BPF_H

#include "pids.bpf.h"
#include "python.bpf.h"
#include "stack.bpf.h"

enum { WAKE_NS = 50000000, WAKE_BYTES = 1 << 20 };

/* What the last sample was of, on any CPU, and when the loader was woken: a guess, as CPUs race for
 * it. */
static u64 last_memory, last_code, last_wake_ns;

/*
 * How to submit: to wake the loader for each sample would cost more than the sample. But it is to
 * look at new code at once, for the process may be gone in a moment; and soon at what a JIT
 * compiler says, for that may be replaced.
 */
static __always_inline u64 wakeup(const struct wire_stack *s)
{
	const bool is_new = last_memory != s->memory || last_code != s->code;

	last_memory = s->memory;
	last_code = s->code;
	if (!is_new && s->time_ns < last_wake_ns + WAKE_NS &&
	    bpf_ringbuf_query(&stacks, BPF_RB_AVAIL_DATA) <= WAKE_BYTES)
		return BPF_RB_NO_WAKEUP;
	last_wake_ns = s->time_ns;
	return BPF_RB_FORCE_WAKEUP;
}

/* Copies the stack, from the piece that its end is in, up to what cannot be read. */
static __always_inline void copy_stack(struct wire_stack *s, u64 sp)
{
	s->base = sp & ~(WIRE_STACK_PIECE - 1ULL);
	s->len = 0;
	for (u32 at = 0; at < WIRE_STACK_BYTES; at += WIRE_STACK_PIECE) {
		if (bpf_probe_read_user(&s->stack[at], WIRE_STACK_PIECE, (void *)s->base + at))
			break;
		s->len = at + WIRE_STACK_PIECE;
	}
}

static __always_inline u32 kind_of_pages(int member)
{
	return member == MM_ANONPAGES	? WIRE_STACK_ANON
	       : member == MM_FILEPAGES ? WIRE_STACK_FILE
					: WIRE_STACK_SHMEM;
}

/* On arm64 the kernel keeps more than registers behind them. */
enum {
	REGISTERS = sizeof(struct pt_regs) / sizeof(u64) < WIRE_STACK_REGS
			    ? sizeof(struct pt_regs) / sizeof(u64)
			    : WIRE_STACK_REGS,
};

static __always_inline bool copy_registers(u64 to[WIRE_STACK_REGS], struct task_struct *task)
{
	__builtin_memset(to, 0, WIRE_STACK_REGS * sizeof(*to));
	return !bpf_probe_read_kernel(to, REGISTERS * sizeof(*to), (void *)bpf_task_pt_regs(task));
}

/* Returns from 1 to twice the mean, which is below 2^31. */
static __always_inline u64 random_gap(u64 mean)
{
	return 1 + bpf_get_prandom_u32() % (2 * mean);
}

/* Addresses come again, also those of code objects where they are not randomised: times do not. */
static __always_inline u64 program_of(struct task_struct *task, const struct mm_rss *m)
{
	return m->started_ns ^ BPF_CORE_READ(task, self_exec_id) << 48;
}

/* A library may be mapped in the place of another of the same size: its linker has told us so. */
static __always_inline void tell_code(struct wire_stack *s, struct task_struct *task)
{
	const struct proc *proc = find_proc(s->tgid);

	s->code = BPF_CORE_READ(task, mm, exec_vm) ^ (proc ? proc->code_change << 32 : 0);
	s->closed = proc ? proc->closed : 0;
}

/* Whose stack it is, as of now. */
static __always_inline void fill_sample(struct wire_stack *s, struct task_struct *task,
					const struct mm_rss *m)
{
	s->time_ns = bpf_ktime_get_ns();
	s->started_ns = m->started_ns;
	s->tgid = m->tgid;
	s->tid = tid_of(task);
	s->parent = tgid_of(BPF_CORE_READ(task, real_parent));
	s->memory = m->key;
	s->program = program_of(task, m);
	s->run = s->in_kernel = s->back = 0;
	tell_code(s, task);
}

static __always_inline void copy_frames(struct wire_stack *s, u32 event, u32 n, u32 end)
{
	const struct python_frames *frames = bpf_map_lookup_elem(&python_frames, &event);

	s->python_end = end;
	s->n_python = 0;
	/* The verifier is to see the bound on what is copied, not on n - 1. */
	barrier_var(n);
	if (frames && n <= WIRE_PYTHON_FRAMES &&
	    !bpf_probe_read_kernel(s->python, n * sizeof(*s->python), frames))
		s->n_python = n;
}

/*
 * Fills in what the stack of the running thread is, after walk_python() for that event. Whoever
 * reserves the sample looks whether there is room, and once: on 6.1 the verifier takes a second
 * look for one that may end otherwise.
 */
static __always_inline void fill_stack(struct wire_stack *s, struct task_struct *task,
				       const struct mm_rss *m, u32 event, u32 n, u32 end)
{
	fill_sample(s, task, m);
	copy_frames(s, event, n, end);
	if (copy_registers(s->regs, task))
		copy_stack(s, PT_REGS_SP((struct pt_regs *)s->regs));
	else
		s->base = s->len = 0;
}

static __always_inline void submit_sample(struct wire_stack *s)
{
	bpf_ringbuf_submit(s, wakeup(s));
}

#endif
