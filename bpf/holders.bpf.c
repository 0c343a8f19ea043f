// SPDX-License-Identifier: GPL-2.0-only
/*
 * holders.bpf.c - which memory map that has a file is locked.
 *
 * To attach a probe, the kernel locks the memory maps that have the file, one after the other, and
 * nobody can fork meanwhile. If one is locked for long, the whole machine waits for it. So the
 * loader looks before: it maps the file, and this walks the tree of all that have mapped it.
 *
 * The walk takes no lock. It may meet a node that has just gone, or miss one that is being added.
 */
#include "state.bpf.h"

enum {
	/* Of mmap_lock.count: whoever waits for the lock sets these, but does not hold it. */
	WAITERS = 0x6,
	STEPS = 1 << 23,
};

struct walk {
	struct rb_node *at, *from;
	struct mm_struct *own;
	struct wire_holder found;
};

/* Without CONFIG_MEMCG nobody knows whose it is; with CONFIG_PREEMPT_RT, whether it is locked. */
static __always_inline void look_at_lock(struct wire_holder *holder, struct mm_struct *mm)
{
	struct task_struct *thread;

	if (!bpf_core_field_exists(mm->mmap_lock.count))
		return;
	holder->count = BPF_CORE_READ(mm, mmap_lock.count.counter) & ~WAITERS;
	holder->thread = BPF_CORE_READ(mm, mmap_lock.owner.counter) & ~7ull;
	thread = (void *)holder->thread;
	holder->switches = BPF_CORE_READ(thread, nvcsw) + BPF_CORE_READ(thread, nivcsw);
	if (bpf_core_field_exists(mm->owner))
		holder->tgid = BPF_CORE_READ(mm, owner, tgid);
}

static __always_inline bool is_locked(struct walk *w)
{
	const u64 offset = bpf_core_field_offset(struct vm_area_struct, shared.rb);
	struct vm_area_struct *vma = (void *)w->at - offset;
	struct mm_struct *mm = BPF_CORE_READ(vma, vm_mm);

	if (mm == w->own)
		return false;
	look_at_lock(&w->found, mm);
	w->found.mm = (u64)mm;
	return w->found.count;
}

/* One edge of the tree. A node is looked at when it is reached from above. */
static long walk_on(u32 i, struct walk *w)
{
	struct rb_node *at = w->at, *left, *right, *up;
	struct rb_node *from = w->from;

	if (!at)
		return 1;
	left = BPF_CORE_READ(at, rb_left);
	right = BPF_CORE_READ(at, rb_right);
	up = (void *)(BPF_CORE_READ(at, __rb_parent_color) & ~3ull);
	w->from = at;
	if (from == up) {
		if (is_locked(w))
			return 1;
		w->at = left ? left : right ? right : up;
	} else if (from == left) {
		w->at = right ? right : up;
	} else {
		w->at = up;
	}
	return 0;
}

static long begin_walk(struct task_struct *task, struct vm_area_struct *vma, struct walk *w)
{
	w->at = BPF_CORE_READ(vma, vm_file, f_inode, i_mapping, i_mmap.rb_root.rb_node);
	return 0;
}

/*
 * args->mm: of a holder that was found before, to look at its lock again; or 0, and args->address
 * is where the caller has mapped the file: then *args is about the first that is locked, if any is.
 * Returns 1 if nobody knows, as the caller's own memory map is busy.
 */
SEC("syscall")
int find_holder(struct wire_holder *args)
{
	struct walk w = {};

	if (args->mm) {
		look_at_lock(&w.found, (void *)args->mm);
		w.found.mm = args->mm;
	} else {
		w.own = bpf_get_current_task_btf()->mm;
		if (bpf_find_vma(bpf_get_current_task_btf(), args->address, begin_walk, &w, 0))
			return 1;
		bpf_loop(STEPS, walk_on, &w, 0);
		if (!w.found.count)
			w.found.mm = 0;
	}
	args->mm = w.found.mm;
	args->count = w.found.count;
	args->thread = w.found.thread;
	args->switches = w.found.switches;
	args->tgid = w.found.tgid;
	return 0;
}
