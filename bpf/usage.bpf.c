// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage.bpf.c - walks over the threads of a process, and over the processes of the tree.
 *
 * Each thread must still belong to the process after it was read; otherwise the walk is taken
 * again.
 *
 * The functions are global: the verifier looks at each once, not once for each place it is called
 * from.
 */
#include "mms.bpf.h"
#include "threads.bpf.h"
#include "usage.bpf.h"

enum {
	FRESH_THREADS = 256, /* up to so many threads of a tree, every checkpoint reads all; beyond,
			      * others' usage may be config.stale_ns old */
};

struct thread_walk {
	u64 signal;
	u64 node; /* of the thread_node to visit next */
	struct wire_usage sum;
	u32 threads;
	bool complete;
};

static long walk_thread(u32 i, struct thread_walk *w)
{
	struct task_struct *t = thread_at(w->node);
	u64 key = (u64)t;

	if (w->node == list_head(w->signal)) {
		w->complete = true;
		return 1;
	}
	if (!(BPF_CORE_READ(t, flags) & PF_EXITING) || !bpf_map_lookup_elem(&exited, &key))
		add_thread(&w->sum, t);
	w->node = next_node(w->node);
	w->threads++;
	return (u64)BPF_CORE_READ(t, signal) != w->signal;
}

/* False: a thread came or went meanwhile. */
static __always_inline bool walk_process(struct proc *proc, struct thread_walk *w)
{
	u32 done = *(volatile u32 *)&proc->exits_done;

	w->signal = proc->signal;
	w->node = first_node(w->signal);
	w->sum = proc->gone;
	w->threads = 0;
	w->complete = false;
	bpf_loop(WALK_THREADS, walk_thread, w, 0);
	return w->complete && *(volatile u32 *)&proc->exits_begun == done;
}

int add_process(struct wire_usage *sum, struct proc *proc)
{
	struct thread_walk w = {};

	if (!proc || !sum || !proc->signal)
		return 0;
	/* No loop: clang would close it in a way that the verifier of 6.1 refuses. */
	if (!walk_process(proc, &w) && !walk_process(proc, &w) && !walk_process(proc, &w))
		count(threads_unread);
	add_usage(sum, &w.sum);
	return w.threads;
}

struct exit_walk {
	u64 signal;
	u64 node;
	bool found; /* a thread that is not gone */
	bool complete;
};

static __always_inline void begin_exit_walk(struct exit_walk *w, struct proc *proc)
{
	w->signal = proc->signal;
	w->node = first_node(w->signal);
}

/* exit_notify() sets exit_state after the exit event; kernel/exit.c */
static long find_zombie(u32 i, struct exit_walk *w)
{
	struct task_struct *t = thread_at(w->node);

	if (w->node == list_head(w->signal))
		return 1;
	if (BPF_CORE_READ(t, exit_state)) {
		w->found = true;
		return 1;
	}
	w->node = next_node(w->node);
	return 0;
}

static long find_pending(u32 i, struct exit_walk *w)
{
	u64 key = (u64)thread_at(w->node);

	if (w->node == list_head(w->signal)) {
		w->complete = true;
		return 1;
	}
	if (!bpf_map_lookup_elem(&exited, &key)) {
		w->found = true;
		return 1;
	}
	w->node = next_node(w->node);
	return 0;
}

/* Only a leader stays on the list as a zombie: the others are released at once. */
int bury_zombies(struct proc *proc)
{
	struct exit_walk w = {};
	u8 yes = 1;
	u64 key;

	if (!proc)
		return 0;
	begin_exit_walk(&w, proc);
	bpf_loop(WALK_THREADS, find_zombie, &w, 0);
	if (!w.found)
		return 0;
	key = (u64)thread_at(w.node);
	add_thread(&proc->gone, (struct task_struct *)key);
	bpf_map_update_elem(&exited, &key, &yes, BPF_ANY);
	return 1;
}

int all_threads_gone(struct proc *proc)
{
	struct exit_walk w = {};
	u32 done;

	if (!proc)
		return 0;
	done = *(volatile u32 *)&proc->exits_done;
	begin_exit_walk(&w, proc);
	bpf_loop(WALK_THREADS, find_pending, &w, 0);
	return w.complete && !w.found && *(volatile u32 *)&proc->exits_begun == done;
}

/* Small: on 6.1 the frames of all callers share 512 bytes. */
struct tree_walk {
	struct wire_usage *sum;
	u64 hugetlb; /* of the processes that are alive */
	u32 job;
	u32 threads;
};

static long walk_slot(u32 i, struct tree_walk *w)
{
	u32 *tgid = bpf_map_lookup_elem(&slots, &i);
	struct proc *proc;

	if (!tgid || !*tgid)
		return 0;
	proc = find_proc(*tgid);
	if (!proc || proc->waiting || proc->job != w->job)
		return 0;
	w->threads += add_process(w->sum, proc);
	subtract_usage(w->sum, &proc->joined);
	w->hugetlb += hugetlb_of(proc);
	return 0;
}

/* False: a process ended meanwhile. */
static __always_inline bool walk_tree(struct tree_walk *w)
{
	struct wire_tree *tree = tree_of(w->job);
	u64 done = *(volatile u64 *)&tree->exits_done;

	w->hugetlb = 0;
	w->threads = 0;
	*w->sum = tree->gone;
	bpf_loop(machine.slots, walk_slot, w, 0);
	return *(volatile u64 *)&tree->exits_begun == done;
}

int used_alone(struct proc *proc, struct wire_usage *own, struct wire_usage *usage)
{
	struct wire_tree *tree;

	if (!proc || !own || !usage)
		return 0;
	tree = tree_of(proc->job);
	*usage = tree->gone;
	add_usage(usage, own);
	add_usage(usage, &proc->base);
	subtract_usage(usage, &proc->joined);
	keep_from_falling(usage, &tree->cpu_told);
	return 0;
}

/*
 * A sum is taken again for some time where it costs much: in a big tree, and in an audit, where the
 * walk passes by all processes of the machine. The end of a run or a job is always exact.
 */
static __always_inline bool is_dear(const struct wire_tree *tree, u32 threads)
{
	return !tree->finished && (threads > FRESH_THREADS || config.audit);
}

int read_tree(struct wire_snapshot *to, u32 job, u64 now)
{
	struct wire_tree *tree = tree_of(job);
	struct tree_walk w = {.job = job};

	if (!to)
		return 0;
	if (is_dear(tree, tree->live.threads) && now - tree->live.time_ns < config.stale_ns &&
	    !tree->live.writing) {
		to->usage = tree->live.sum;
		to->memory.hugetlb = tree->live.hugetlb;
		count(usage_stale);
		return 1;
	}
	w.sum = &to->usage;
	if (!walk_tree(&w) && !walk_tree(&w) && !walk_tree(&w))
		count(threads_unread);
	keep_from_falling(&to->usage, &tree->cpu_told);
	if (is_dear(tree, w.threads) && !__sync_val_compare_and_swap(&tree->live.writing, 0, 1)) {
		tree->live.sum = to->usage;
		tree->live.hugetlb = w.hugetlb;
		tree->live.time_ns = now;
		tree->live.threads = w.threads;
		tree->live.writing = 0;
	}
	to->memory.hugetlb = w.hugetlb;
	return 0;
}
