// SPDX-License-Identifier: GPL-2.0-only
/*
 * curve.bpf.c - what a tree has used, some 20 times a second, while one of its threads runs.
 *
 * A CPU that runs a task has a timer that expires at each tick, 100 to 1000 times a second; an idle
 * CPU has none (CONFIG_NO_HZ). So who looks when timers expire sees each thread that runs for a
 * while, wakes nobody, and costs nothing at a context switch. A CPU with nohz_full has no ticks
 * either: what runs there is seen only when other timers expire.
 *
 * A point has the usage of the whole tree, read as a checkpoint reads it, so that both agree. This
 * runs in an interrupt, so the walk is bounded, and no tree takes more than a hundredth of a CPU.
 *
 * Example, a command of one busy thread, ticks each 4 ms: points come at 4, 8, 12 ... ms; from
 * 512 ms on each 8 ms, and from 3.2 s on each 50 ms. So a run of 50 ms has a curve, too.
 */
#include "pids.bpf.h"
#include "usage.bpf.h"

enum {
	PERIOD_NS = 50000000,  /* between two points of a tree */
	YOUNG = 64,	       /* in its first seconds: a 64th of its age */
	CALM = 100,	       /* and at least so many times as long as the walk took */
	LARGE_NS = 1000000000, /* until another look at a tree that is too large */
	MOST_SLOTS = 4096,     /* processes that a walk visits */
	MOST_THREADS = 512,    /* threads that it reads, in 150 to 300 us */
};

/*
 * Sums of this CPU's walk, which the stack has no room for. No other begins meanwhile: a program of
 * a raw tracepoint does not run within itself (05b24ff9b2cf, Linux 6.1).
 */
struct curve_sums {
	struct wire_usage tree, process;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct curve_sums);
} curve_sums SEC(".maps");

struct curve_walk {
	struct curve_sums *sums;
	u32 job;
	u32 threads;
	u32 failed; /* 1: a thread exited meanwhile; 2: there are too many threads */
};

static long add_slot(u32 i, struct curve_walk *w)
{
	u32 *tgid = bpf_map_lookup_elem(&slots, &i);
	struct proc *proc = tgid && *tgid ? find_proc(*tgid) : NULL;
	struct signal_struct *signal;
	int threads;

	if (!proc || proc->waiting || proc->job != w->job)
		return 0;
	signal = (void *)proc->signal;
	threads = BPF_CORE_READ(signal, nr_threads);
	if (threads > MOST_THREADS - (int)w->threads) {
		w->failed = 2;
		return 1;
	}
	threads = read_process_once(&w->sums->process, proc);
	if (threads < 0) {
		w->failed = 1;
		return 1;
	}
	add_part(&w->sums->tree, &w->sums->process);
	leave_out_part(&w->sums->tree, joined_of(proc));
	w->threads += threads;
	return 0;
}

/* Returns false if there is no sum: somebody exited meanwhile, or the tree is too large. */
static __always_inline bool sum_tree(struct curve_walk *w, struct wire_tree *tree)
{
	u64 done = *(volatile u64 *)&tree->exits_done;

	order_loads();
	w->sums->tree = tree->gone;
	w->failed = machine.slots > MOST_SLOTS ? 2 : 0;
	if (!w->failed)
		bpf_loop(machine.slots, add_slot, w, 0);
	if (w->failed == 2)
		count(untaken_usage);
	order_loads();
	return !w->failed && *(volatile u64 *)&tree->exits_begun == done;
}

/* Says when the tree's next point is due, after a walk from `from` to `to`. */
static __always_inline u64 next_due(const struct wire_tree *tree, const struct curve_walk *w,
				    u64 from, u64 to)
{
	u64 period = (to - tree->ran_ns) / YOUNG, calm = (to - from) * CALM;

	if (w->failed == 2)
		return to + LARGE_NS;
	if (period > PERIOD_NS)
		period = PERIOD_NS;
	return to + (period > calm ? period : calm);
}

static __always_inline void emit_usage(const struct proc *proc, const struct wire_usage *sum,
				       u32 tid, u64 now)
{
	struct wire_usage_point *p = bpf_ringbuf_reserve(&timeline, sizeof(*p), 0);

	if (!p) {
		count(lost_points);
		return;
	}
	fill_header(&p->h, WIRE_USAGE, sizeof(*p), proc->job, proc->tgid, tid, proc->started_ns);
	p->h.time_ns = now; /* before the walk, as a checkpoint has it */
	p->tree = *sum;
	bpf_ringbuf_submit(p, timeline_wakeup(now));
}

/* It takes none of the arguments: any timer will do. */
SEC("tp_btf/hrtimer_expire_entry")
int usage_tick(void *ctx)
{
	u64 id = current_id(), now, due;
	struct proc *proc = find_proc(id >> 32);
	struct curve_walk w = {.sums = bpf_map_lookup_elem(&curve_sums, &(u32){0})};
	struct wire_tree *tree;

	if (!proc || proc->waiting || !w.sums)
		return 0;
	if (!is_of_run(proc))
		return 0;
	tree = tree_of(proc->job);
	now = bpf_ktime_get_ns();
	due = *(volatile u64 *)&tree->usage_due_ns;
	if (tree->finished || now < due)
		return 0;
	/* One CPU at a time, until it says when the next point is due. */
	if (__sync_val_compare_and_swap(&tree->usage_due_ns, due, now + LARGE_NS) != due)
		return 0;
	if (!tree->ran_ns)
		tree->ran_ns = now;
	refresh_sched_clock();
	w.job = proc->job;
	if (sum_tree(&w, tree)) {
		keep_from_falling(&w.sums->tree, &tree->cpu_told);
		emit_usage(proc, &w.sums->tree, id, now);
	}
	tree->usage_due_ns = next_due(tree, &w, now, bpf_ktime_get_ns());
	return 0;
}
