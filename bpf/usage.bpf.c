// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage.bpf.c - walks over the threads of a process, and over the processes of a tree.
 *
 * A thread that exits moves what it used to its process's `gone` (process.bpf.c), and a process
 * that exits to its tree's. So a walk that meets an exit may miss the thread, or count it twice.
 * Each exit therefore raises exits_begun before the move and exits_done after it. A walk reads
 * exits_done first and exits_begun last: if they are equal, nothing moved meanwhile, else the walk
 * starts again, when what was being moved has arrived.
 *
 * Example: threads A and B have used 30 and 50 ms, `gone` is 0, and 4 threads have exited before.
 * A walk reads exits_done 4, gone 0, and B. Now A exits: exits_begun 5, gone 30, exits_done 5, and
 * A leaves the list. The walk comes to the end of the list with 50 ms, sees exits_begun 5, not 4,
 * and starts again: gone 30 + B 50 = 80 ms.
 *
 * The functions are global: the verifier checks a global function once, not at each call.
 */
#include "exited.bpf.h"
#include "gpu_wait.bpf.h"
#include "mms.bpf.h"
#include "threads.bpf.h"
#include "usage.bpf.h"
#include "waits.bpf.h"

enum {
	/*
	 * Each checkpoint reads all threads of a tree that has at most this many. In a larger
	 * tree, the usage of other processes may be config.stale_ns old.
	 */
	FRESH_THREADS = 256,
	WALKS = 3,		   /* at most, if processes or threads exit meanwhile */
	SERVED_STALE_NS = 1000000, /* in place of config.stale_ns, for a job that is served */
	LOOKS = 1 << 14,	   /* at exits that are under way: some 160 us */
};

struct exits {
	const u64 *begun, *done;
};

static long have_ended(u32 i, const struct exits *e)
{
	return *(volatile u64 *)e->begun == *(volatile u64 *)e->done;
}

/*
 * The thread that exits is in a BPF program on another CPU, and so is not scheduled away: it needs
 * less than a microsecond, unless its CPU is interrupted. A whole walk may take less, too. (A
 * process that joins a job is moved in a program that may be scheduled away. That is rare.)
 */
static __always_inline void await_exits(const u64 *begun, const u64 *done)
{
	struct exits e = {.begun = begun, .done = done};

	short_loop(LOOKS, have_ended, &e);
}

/* Global, so that the verifier checks it once, and not for each way to a thread of a walk. */
int add_listed_thread(struct wire_usage *sum, u64 task)
{
	if (sum)
		add_thread(sum, (struct task_struct *)task);
	return 0;
}

/* Likewise, with a frame of its own beside that one. */
int add_listed_wait(struct wire_usage *sum, u64 task, int left)
{
	if (sum)
		add_waiting(sum, task, left);
	return 0;
}

/* Kept small: on 6.1 the frames of a function and all its callers share 512 bytes. */
struct thread_walk {
	u64 node; /* of the thread_node to visit next */
	struct proc *proc;
	struct wire_usage *sum;
	u32 threads;
	bool complete;
};

static long walk_thread(u32 i, struct thread_walk *w)
{
	struct task_struct *t = thread_at(w->node);
	u64 key = (u64)t;
	bool left;

	if (w->node == list_head(w->proc->signal)) {
		w->complete = true;
		return 1;
	}
	left = BPF_CORE_READ(t, flags) & PF_EXITING && has_exited(t);
	if (!left)
		add_listed_thread(w->sum, key);
	if (config.waits)
		add_listed_wait(w->sum, key, left);
	if (gpu_waited)
		add_gpu_wait(w->sum, key);
	w->node = next_node(w->node);
	w->threads++;
	return (u64)BPF_CORE_READ(t, signal) != w->proc->signal;
}

/* It is over if no thread exited meanwhile, and the walk could follow the list. */
static __always_inline bool walk_process(struct thread_walk *w)
{
	struct proc *proc = w->proc;
	u64 done = *(volatile u64 *)&proc->exits_done;

	order_loads();
	w->node = first_node(proc->signal);
	*w->sum = proc->gone;
	w->threads = 0;
	w->complete = false;
	bpf_loop(WALK_THREADS, walk_thread, w, 0);
	order_loads();
	w->complete &= *(volatile u64 *)&proc->exits_begun == done;
	return w->complete;
}

static __always_inline bool walk_until_it_stands(struct thread_walk *w)
{
	const struct proc *proc = w->proc;

	attempts (WALKS) {
		if (attempt)
			await_exits(&proc->exits_begun, &proc->exits_done);
		if (walk_process(w))
			return true;
	}
	return false;
}

__noinline int read_process(struct wire_usage *usage, struct proc *proc)
{
	struct thread_walk w = {.proc = proc, .sum = usage};

	if (!proc || !usage)
		return 0;
	if (!proc->signal) {
		__builtin_memset(usage, 0, sizeof(*usage));
		return 0;
	}
	if (!walk_until_it_stands(&w))
		count(threads_unread);
	return w.threads;
}

int read_process_once(struct wire_usage *usage, struct proc *proc)
{
	struct thread_walk w = {.proc = proc, .sum = usage};

	if (!proc || !usage || !proc->signal)
		return -1;
	return walk_process(&w) ? (int)w.threads : -1;
}

struct exit_walk {
	u64 signal;
	u64 node;
	u32 found;    /* 1: node is the thread that the walk looks for */
	u32 complete; /* 1; no bool, of which the verifier believes that it may be 255 */
};

static __always_inline void begin_exit_walk(struct exit_walk *w, struct proc *proc)
{
	w->signal = proc->signal;
	w->node = first_node(w->signal);
}

static long bury_thread(u32 i, struct exit_walk *w)
{
	struct task_struct *t = thread_at(w->node);

	if (w->node == list_head(w->signal)) {
		w->complete = 1;
		return 1;
	}
	if (BPF_CORE_READ(t, flags) & PF_EXITING)
		note_exit(room_for_exit(t), t);
	w->node = next_node(w->node);
	return 0;
}

/* Looks for a thread that has not passed its exit event. */
static long find_pending(u32 i, struct exit_walk *w)
{
	if (w->node == list_head(w->signal)) {
		w->complete = true;
		return 1;
	}
	if (!has_exited(thread_at(w->node))) {
		w->found = true;
		return 1;
	}
	w->node = next_node(w->node);
	return 0;
}

/*
 * A thread has PF_EXITING before its exit event (kernel/exit.c, exit_signals()), sets it without a
 * barrier, and counts signal->live down between these, which is one. So with ours, either we see
 * the flag, or its event finds the process.
 */
int bury_exiting(struct proc *proc)
{
	struct exit_walk w = {};

	if (!proc)
		return 0;
	__sync_val_compare_and_swap(&proc->ended, 1, 1);
	begin_exit_walk(&w, proc);
	bpf_loop(WALK_THREADS, bury_thread, &w, 0);
	if (!w.complete)
		count(threads_unread);
	return 0;
}

int all_threads_gone(struct proc *proc)
{
	struct exit_walk w = {};
	u64 done;

	if (!proc)
		return 0;
	done = *(volatile u64 *)&proc->exits_done;
	order_loads();
	begin_exit_walk(&w, proc);
	bpf_loop(WALK_THREADS, find_pending, &w, 0);
	order_loads();
	return w.complete && !w.found && *(volatile u64 *)&proc->exits_begun == done;
}

/* Kept small: on 6.1 the frames of a function and all its callers share 512 bytes. */
struct tree_walk {
	struct wire_checkpoint *c;
	struct proc *proc; /* of c->own */
	u32 job;
	u32 threads;
};

/* Not inlined: what they keep on the stack is gone when the deepest call comes. */
__noinline int add_part(struct wire_usage *sum, const struct wire_usage *part)
{
	if (sum && part)
		add_usage(sum, part);
	return 0;
}

__noinline int leave_out_part(struct wire_usage *sum, const struct wire_usage *part)
{
	if (sum && part)
		subtract_usage(sum, part);
	return 0;
}

__noinline int leave_out_of_all(struct wire_usage *sum, const struct wire_usage *part)
{
	if (sum && part)
		atomic_subtract_usage(sum, part);
	return 0;
}

static long walk_slot(u32 i, struct tree_walk *w)
{
	u32 *tgid = bpf_map_lookup_elem(&slots, &i);
	struct wire_snapshot *tree = &w->c->tree;
	struct proc *proc;

	if (!tgid || !*tgid)
		return 0;
	proc = find_proc(*tgid);
	if (!proc || proc->waiting || proc->job != w->job)
		return 0;
	if (proc == w->proc) /* comes last */
		return 0;
	w->threads += read_process(&w->c->own.usage, proc);
	add_part(&tree->usage, &w->c->own.usage);
	leave_out_part(&tree->usage, joined_of(proc));
	tree->memory.hugetlb += hugetlb_of(proc);
	return 0;
}

/*
 * c->own has the usage of each other process in turn, for want of room on the stack, and in the end
 * that of its own. Returns false if a process exited meanwhile.
 */
static __always_inline bool walk_tree(struct tree_walk *w)
{
	struct wire_tree *tree = tree_of(w->job);
	u64 done = *(volatile u64 *)&tree->exits_done;

	order_loads();
	w->c->tree.memory.hugetlb = 0;
	w->c->tree.usage = tree->gone;
	w->threads = 0;
	bpf_loop(machine.slots, walk_slot, w, 0);
	w->threads += used_by_process(w->proc, &w->c->own.usage);
	add_part(&w->c->tree.usage, &w->c->own.usage);
	leave_out_part(&w->c->tree.usage, joined_of(w->proc));
	w->c->tree.memory.hugetlb += hugetlb_of(w->proc);
	order_loads();
	return *(volatile u64 *)&tree->exits_begun == done;
}

static __always_inline bool walk_tree_again(struct tree_walk *w)
{
	const struct wire_tree *tree = tree_of(w->job);

	await_exits(&tree->exits_begun, &tree->exits_done);
	return walk_tree(w);
}

int used_alone(struct proc *proc, struct wire_usage *own, struct wire_usage *usage)
{
	struct wire_tree *tree;

	if (!proc || !own || !usage)
		return 0;
	tree = tree_of(proc->job);
	*usage = tree->gone;
	add_usage(usage, own);
	leave_out_part(usage, joined_of(proc));
	keep_from_falling(usage, &tree->cpu_told);
	return 0;
}

/*
 * Returns true if a walk over the tree costs so much that its sum is used for config.stale_ns: for
 * a tree of many threads, and in an audit, where a walk visits all processes of the machine, but
 * for a job that is served as a run. The end of a run or a job is always walked anew.
 */
static __always_inline bool is_dear(const struct wire_tree *tree, u32 threads)
{
	return !tree->finished && (threads > FRESH_THREADS || (config.audit && !tree->served));
}

static __always_inline u64 stale_ns(const struct wire_tree *tree)
{
	return tree->served ? SERVED_STALE_NS : config.stale_ns;
}

int read_tree(struct wire_checkpoint *c, struct proc *proc)
{
	struct tree_walk w = {.c = c, .proc = proc};
	struct wire_tree *tree;

	if (!c || !proc)
		return 0;
	w.job = proc->job;
	tree = tree_of(w.job);
	if (is_dear(tree, tree->live.threads) &&
	    c->h.time_ns - tree->live.time_ns < stale_ns(tree) && !tree->live.writing) {
		c->tree.usage = tree->live.sum;
		c->tree.memory.hugetlb = tree->live.hugetlb;
		used_by_process(proc, &c->own.usage);
		count(usage_stale);
		return 1;
	}
	if (!walk_tree(&w) && !walk_tree_again(&w) && !walk_tree_again(&w))
		count(threads_unread);
	keep_from_falling(&c->tree.usage, &tree->cpu_told);
	if (is_dear(tree, w.threads) && !__sync_val_compare_and_swap(&tree->live.writing, 0, 1)) {
		tree->live.sum = c->tree.usage;
		tree->live.hugetlb = c->tree.memory.hugetlb;
		tree->live.time_ns = c->h.time_ns;
		tree->live.threads = w.threads;
		tree->live.writing = 0;
	}
	return 0;
}
