// SPDX-License-Identifier: GPL-2.0-only
/* kept.bpf.c - walks over threads, for the pages that they keep back; see kept.bpf.h. */
#include "kept.bpf.h"
#include "threads.bpf.h"

struct kept_walk {
	u64 signal;
	u64 node;		   /* of the thread_node to visit next */
	s64 pages[NR_MM_COUNTERS]; /* kept back by the threads so far */
};

static long visit_thread(u32 i, struct kept_walk *w)
{
	struct task_struct *thread = thread_at(w->node);
	struct task_struct___old *t = (void *)thread;
	int kept[NR_MM_COUNTERS] = {};

	if (w->node == list_head(w->signal) || (u64)BPF_CORE_READ(thread, signal) != w->signal)
		return 1;
	bpf_core_read(kept, sizeof(kept), &t->rss_stat.count);
	for (int member = 0; member < NR_MM_COUNTERS; member++)
		w->pages[member] += kept[member];
	w->node = next_node(w->node);
	return 0;
}

static __always_inline void add_pages(u64 *to, s64 pages)
{
	*to = not_negative((s64)*to + pages);
}

static __noinline void add_kept(struct wire_memory *to, u64 signal)
{
	struct kept_walk w = {.signal = signal, .node = first_node(signal)};
	u64 rss;

	bpf_loop(WALK_THREADS, visit_thread, &w, 0);
	add_pages(&to->file, w.pages[MM_FILEPAGES]);
	add_pages(&to->anon, w.pages[MM_ANONPAGES]);
	add_pages(&to->swap, w.pages[MM_SWAPENTS]);
	add_pages(&to->shmem, w.pages[MM_SHMEMPAGES]);
	rss = to->file + to->anon + to->shmem;
	if (rss > to->peak)
		to->peak = rss;
	if (rss > to->step_peak)
		to->step_peak = rss;
}

int add_kept_by_process(struct wire_memory *to, struct proc *proc)
{
	if (has_old_layout() && to && proc && proc->mm)
		add_kept(to, proc->signal);
	return 0;
}

struct tree_walk {
	struct wire_memory *to;
	u32 job;
};

static long visit_slot(u32 i, struct tree_walk *w)
{
	u32 *tgid = bpf_map_lookup_elem(&slots, &i);
	struct proc *proc = tgid && *tgid ? find_proc(*tgid) : NULL;

	if (proc && proc->mm && proc->job == w->job)
		add_kept(w->to, proc->signal);
	return 0;
}

int add_kept_by_tree(struct wire_memory *to, u32 job)
{
	struct tree_walk w = {.to = to, .job = job};

	if (has_old_layout() && to)
		bpf_loop(machine.slots, visit_slot, &w, 0);
	return 0;
}
