// SPDX-License-Identifier: GPL-2.0-only
/* snapshot.bpf.c - what a checkpoint says, from the totals that other programs keep. */
#include "kept.bpf.h"
#include "rss.bpf.h"
#include "snapshot.bpf.h"
#include "stack.bpf.h"

/* Returns the highest RSS of the process's step, of its mms before this one. */
static __always_inline u64 earlier_step(struct proc *proc, bool is_checkpoint)
{
	u64 step = proc->earlier_step;

	if (is_checkpoint)
		proc->earlier_step = 0;
	return step;
}

int process_memory(struct proc *proc, bool is_checkpoint, struct wire_memory *to)
{
	struct mm_rss *m;
	u64 peak, epoch;
	s64 rss;

	if (!proc || !to)
		return 0;
	__builtin_memset(to, 0, sizeof(*to));
	to->peak = proc->earlier_peak;
	to->step_peak = earlier_step(proc, is_checkpoint);
	m = memory_of(proc);
	if (!m)
		return 0;
	epoch = is_checkpoint ? atomic_add(&m->epoch, 1) : m->epoch;
	rss = pages_of(m->rss);
	to->file = not_negative(pages_of(m->file));
	to->anon = not_negative(rss - pages_of(m->file) - pages_of(m->shmem));
	to->swap = not_negative(pages_of(m->swap));
	to->shmem = not_negative(pages_of(m->shmem));
	peak = highest(&m->peaks, rss);
	if (peak > to->peak)
		to->peak = peak;
	peak = highest_in(&m->peaks, epoch, rss);
	if (peak > to->step_peak)
		to->step_peak = peak;
	to->hugetlb = hugetlb_of(proc);
	return add_kept_by_process(to, proc);
}

static __always_inline void tree_memory(u32 job, u64 epoch, struct wire_memory *to)
{
	struct wire_tree *tree = tree_of(job);
	s64 rss = tree->rss;

	to->file = not_negative(tree->file);
	to->anon = not_negative(rss - tree->file - tree->shmem);
	to->swap = not_negative(tree->swap);
	to->shmem = not_negative(tree->shmem);
	to->peak = highest(&tree->peaks, rss);
	to->step_peak = highest_in(&tree->peaks, epoch, rss);
	to->hugetlb = 0; /* no program keeps a sum: read_tree() fills it in */
	add_kept_by_tree(to, job);
}

int memory_of_tree(u32 job, struct wire_memory *to)
{
	if (to)
		tree_memory(job, tree_of(job)->epoch, to);
	return 0;
}

int begin_checkpoint(struct wire_checkpoint *c, struct proc *proc, u32 what, u32 site, u32 tid)
{
	struct wire_tree *tree;
	u64 epoch;
	u32 job;

	if (!c || !proc)
		return 0;
	recount(memory_of(proc));
	job = proc->job;
	tree = tree_of(job);
	epoch = atomic_add(&tree->epoch, 1);
	fill_header(&c->h, WIRE_CHECKPOINT, 0, job, proc->tgid, tid, proc->started_ns);
	c->seq = epoch;
	c->site = site;
	c->what = what;
	c->name_state = WIRE_NAME_SITE;
	c->value_state = WIRE_VALUE_NONE;
	c->text_state = 0;
	c->name_len = 0;
	c->value = 0;
	c->processes = tree->processes;
	c->inherited = not_negative(tree->inherited);
	c->most = tree->most;
	c->stalls = tree->stalls;
	c->grown = begin_growth(&growth.grown);
	c->given_back = begin_growth(&growth.given_back);
	c->ended = ended_pages();
	c->gpu_grown = gpu_growth();
	tree_memory(job, epoch, &c->tree.memory);
	process_memory(proc, true, &c->own.memory);
	bpf_get_current_comm(c->comm, sizeof(c->comm));
	return 0;
}

int take_snapshot(struct wire_checkpoint *c, struct proc *proc, u32 what, u32 site, u32 tid)
{
	if (c && proc)
		fill_checkpoint(c, proc, what, site, tid);
	return 0;
}

int emit_milestone(struct proc *proc, u32 what, u32 site, u32 tid)
{
	return proc && emit_inline(proc, what, site, tid);
}
