/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * state.bpf.h - what the BPF programs share: the tracked processes, the totals of each tree, the
 * rings, and counts of what went wrong. Each program file includes it; of the weak maps in all of
 * them, the static linker keeps one. Variables are defined in one file (state.bpf.c): of weak ones
 * it would keep the room of all. The memory of processes is in mms.bpf.h.
 *
 * Invariant: `procs` has a tgid from the moment it is tracked until its last thread has exited.
 */
#ifndef QPROF_STATE_BPF_H
#define QPROF_STATE_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire.h"

enum {
	MAX_PROCESSES = 16384, /* default size of the tracked set; the loader may change it */
	MAX_SITES = 16384,     /* probes attached in a run */
	MAX_THREADS = 65536,   /* exiting threads between their exit event and their release */
	MAX_STALLED = 8192,    /* threads that wait for memory at a time; or for a GPU */
};

extern const volatile struct wire_config config;
extern const volatile u32 never; /* 0, as the verifier knows */

enum proc_waiting {
	WAITS = 1,
	WAITS_NO_MORE = 2, /* its exec has come, or the loader takes it out of the job */
};

struct proc {
	u64 started_ns;	  /* first: see engine_tracks() */
	u64 signal;	  /* struct signal_struct *: the same for as long as the process lives */
	u64 mm;		  /* address of its mm; 0 while it has none of its own that is counted */
	u64 earlier_peak; /* highest rss of the mms that it had before, in pages */
	u64 earlier_step; /* the same, since its last checkpoint */
	/* Of its threads that have exited, and extra_* of all; less what was used before the
	 * process was tracked. */
	struct wire_usage gone;
	u64 cpu_told;		     /* the highest CPU time that was reported */
	u64 exits_begun, exits_done; /* differ while a thread is being moved to `gone` */
	u32 tgid, ppid;
	u32 job;
	u32 begins_job; /* 1: one of its threads is making it a job, in an audit */
	u32 slot;
	u32 mm_slot;	 /* of its mm, in `mms` */
	u32 flags;	 /* enum wire_process_flag */
	u32 waiting;	 /* enum proc_waiting: the command before its exec is not counted */
	u32 ended;	 /* 1: it is being taken out of the tracked set, or put into it */
	u32 checkpoints; /* in an audit: since window_ns; else 1 after the first that begins a phase
			  */
	u32 told;	 /* WIRE_TOLD_END and WIRE_TOLD_CHILDREN, of what it runs now */
	u32 told_programs; /* 1: WIRE_TOLD_PROGRAMS */
	u32 closed;	 /* how often its linker has come with fewer executable pages than before */
	u32 has_joined;	 /* 1: what it had used by then is in `joined` */
	u32 written_to;	 /* with --files: s_dev of the file that it wrote last; 0: none */
	u64 written_ns;	 /* the same: when that was */
	u64 window_ns;	 /* begin of the second in which its checkpoints are counted */
	u64 exec_vm;	 /* executable pages that it had mapped at the last look */
	u64 code_change; /* the last of machine.changes that was its own, or its parent's */
	u64 search;	 /* enum search_state, of its mappings: see mapped.bpf.c */
};

/* With what the kernel's hash table adds, 56 bytes: the next larger piece that it takes has twice
 * as many, for each process. */
_Static_assert(sizeof(struct proc) <= 512 - 56, "a process takes 512 bytes");

extern struct wire_tree trees[WIRE_MAX_JOBS];
extern struct wire_machine machine;
extern struct wire_quality quality;

/* What to add to a per-CPU pointer for its address on each CPU; see percpu.bpf.c. The last 16 are
 * filled up with CPU 0's. */
extern u64 cpu_offset[WIRE_MAX_CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct proc);
} procs __weak SEC(".maps");

/* Slot of a process -> what it had used when it joined its job, in an audit. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct wire_usage);
} joined __weak SEC(".maps");

/* slot -> tgid: a walk over the tracked processes costs as many steps as slots are in use. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, u32);
} slots __weak SEC(".maps");

/* Slots that were given back. */
#define QUEUE_OF_SLOTS                                                                             \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_QUEUE);                                                  \
		__uint(max_entries, MAX_PROCESSES);                                                \
		__type(value, u32);                                                                \
	}

QUEUE_OF_SLOTS free_slots __weak SEC(".maps");

/* Checkpoints and process events, apart from points, which could push them out. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} control __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 << 10);
} timeline __weak SEC(".maps");

/* Its records say nothing. That there is one wakes the loader, who lets records of others gather.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 10);
} urgent __weak SEC(".maps");

static const u64 nothing; /* not on the stack: some who call this have no room there */

/* If there is no room, the loader has not begun to read since it was woken. */
static __always_inline void wake_at_once(void)
{
	bpf_ringbuf_output(&urgent, (void *)&nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

/* While the loader lets records gather, as many CPUs as there are may fill the ring. */
static __always_inline bool is_filling_up(void)
{
	return bpf_ringbuf_query(&control, BPF_RB_AVAIL_DATA) > 2 << 20 &&
	       !bpf_ringbuf_query(&urgent, BPF_RB_AVAIL_DATA);
}

/*
 * To wake the loader takes two interrupts, and a guest of a hypervisor pays some 10 us for each. So
 * a record of `control` wakes nobody while the loader lets records gather.
 *
 * The loader hears of each all the same: it says that it does not gather any more, and looks into
 * the ring then; we submit, and look then whether it gathers yet. One of the two sees the other.
 * (To submit is an exchange, which no load passes: bpf_ringbuf_commit() in kernel/bpf/ringbuf.c.)
 */
static __always_inline bool loader_gathers(void)
{
	return *(volatile u32 *)&machine.gathers;
}

/* Called behind the submission; gathered: what loader_gathers() said before it. */
static __always_inline void wake_if_needed(bool gathered)
{
	if (gathered && (!loader_gathers() || is_filling_up()))
		wake_at_once();
}

static __always_inline void submit(void *record)
{
	const bool gathers = loader_gathers();

	bpf_ringbuf_submit(record, gathers ? BPF_RB_NO_WAKEUP : 0);
	wake_if_needed(gathers);
}

/* Submits a copy. Returns 0, or there is no room. */
static __always_inline long submit_copy(void *record, u64 size)
{
	const bool gathers = loader_gathers();
	const long err = bpf_ringbuf_output(&control, record, size, gathers ? BPF_RB_NO_WAKEUP : 0);

	wake_if_needed(gathers);
	return err;
}

/* What a program can send as often as it likes leaves half of `control` to starts and ends. */
static __always_inline bool control_is_half_full(void)
{
	return bpf_ringbuf_query(&control, BPF_RB_AVAIL_DATA) >=
	       bpf_ringbuf_query(&control, BPF_RB_RING_SIZE) / 2;
}

/* Returns room in `control` for a record of that kind, or NULL. A run has the ring by itself. */
static __always_inline void *reserve_in_half(u32 size)
{
	return config.audit && control_is_half_full() ? NULL
						      : bpf_ringbuf_reserve(&control, size, 0);
}

/* Returns what a per-CPU map of one value has on this CPU. */
static __always_inline void *here(void *map)
{
	const u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}

enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

/* For loops that rarely run twice: unrolled they would be most of the program. */
#define attempts(n)                                                                                \
	_Pragma("clang loop unroll(disable)") for (int attempt = 0; attempt < (n); attempt++)

#define atomic_add(at, value) __sync_fetch_and_add(at, value)
#define count(what)	      ((void)__sync_fetch_and_add(&quality.what, 1))

/* An atomic_add() that no load or store of this CPU passes: see order_loads(). */
static __always_inline void atomic_add_in_order(u64 *at, u64 value)
{
	u64 was = __sync_fetch_and_add(at, value);

	barrier_var(was); /* or it returns nothing */
}

/*
 * Keeps loads in order. x86-64 does so by itself. Elsewhere an atomic operation that returns
 * something does: the JIT makes a full barrier of it. (The instruction set has no other before
 * 6.15: Documentation/bpf/standardization/instruction-set.rst.)
 */
static __always_inline void order_loads(void)
{
#if defined(__TARGET_ARCH_x86)
	barrier();
#else
	u64 nothing = 0, was = __sync_fetch_and_add(&nothing, 0);

	barrier_var(was); /* or it returns nothing */
#endif
}

enum { ATTEMPTS = 16 /* to replace a word that other CPUs change as well */ };

/* *word = max(*word, value). Global, so that the verifier checks its attempts once. */
int atomic_max(u64 *word, u64 value);

static __always_inline u64 not_negative(s64 pages)
{
	return pages < 0 ? 0 : pages;
}

/* Takes a slot that was given back, or one never used. Returns false if all are in use. */
static __always_inline bool claim_slot(void *given_back, u32 *ever_used, u32 *slot)
{
	if (!bpf_map_pop_elem(given_back, slot))
		return true;
	*slot = atomic_add(ever_used, 1);
	if (*slot < config.max_processes)
		return true;
	atomic_add(ever_used, -1);
	return false;
}

/*
 * How to submit to `timeline`: the loader sleeps until a quarter of it is full, unless it shows a
 * live line.
 */
static __always_inline u64 timeline_wakeup(u64 now)
{
	if (bpf_ringbuf_query(&timeline, BPF_RB_AVAIL_DATA) > 128 << 10)
		return BPF_RB_FORCE_WAKEUP;
	if (machine.wake_points && now - machine.last_wake_ns > 100000000) {
		machine.last_wake_ns = now;
		return BPF_RB_FORCE_WAKEUP;
	}
	return BPF_RB_NO_WAKEUP;
}

/* A curve gets a point as it moves by the 2^shift-th part of what it is of: coarser after many. */
static __always_inline u32 point_shift(u64 points)
{
	return points < 4096 ? 8 : points < 16384 ? 6 : points < 65536 ? 5 : 4;
}

static __always_inline struct wire_tree *tree_of(u32 job)
{
	return &trees[job & (WIRE_MAX_JOBS - 1)];
}

/* Returns true for the processes that a user waits for: of a run, or of a job that is served as
 * one. The others of an audit are watched, and never held up. */
static __always_inline bool is_of_run(const struct proc *proc)
{
	return !config.audit || *(volatile u32 *)&tree_of(proc->job)->served;
}

/* Leads to the programs that several events share. The loader fills it before it attaches what goes
 * there. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, WIRE_SHARED_PROGRAMS);
	__type(key, u32);
	__type(value, u32);
} changes __weak SEC(".maps");

/* Ends the program, and begins process_changes. */
#define lead_to_changes(ctx)                                                                       \
	do {                                                                                       \
		bpf_tail_call(ctx, &changes, WIRE_PROCESS_CHANGES);                                \
		count(lost_process_events); /* nobody is there */                                  \
	} while (0)

/*
 * A function of its own in each program that calls it several times. The verifier writes a lookup
 * in line, and moves all of a program for each: half of the time that a large one takes to load.
 */
#define outlined static __noinline __attribute__((unused))

/*
 * bpf_loop() for few steps, or for what is rare, such as a new job. The verifier writes bpf_loop()
 * in line, too, if it knows that there are no flags. So it must not, and a step takes 10 ns more
 * where the kernel has retpolines.
 */
extern u64 no_flags;
#define short_loop(steps, step, context) bpf_loop(steps, step, context, *(volatile u64 *)&no_flags)

outlined struct proc *find_proc(u32 tgid)
{
	return bpf_map_lookup_elem(&procs, &tgid);
}

static __always_inline void fill_header(struct wire_header *h, u16 kind, u32 size, u32 job,
					u32 tgid, u32 tid, u64 started_ns)
{
	h->kind = kind;
	h->job = job;
	h->size = size;
	h->time_ns = bpf_ktime_get_ns();
	h->tgid = tgid;
	h->tid = tid;
	h->started_ns = started_ns;
}

char LICENSE[] __weak SEC("license") = "GPL";

#endif
