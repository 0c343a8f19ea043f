// SPDX-License-Identifier: GPL-2.0-only
/*
 * holders.bpf.c - which memory map that has a file is locked.
 *
 * To attach a probe, the kernel locks the memory maps that have the file, one after the other, and
 * nobody can fork meanwhile. If one is locked for long, the whole machine waits for it. So the
 * loader looks before: it maps the file, and this walks the tree of all that have mapped it.
 *
 * The walk takes no lock. It may meet a node that has just gone, or miss one that is being added.
 *
 * Locks are taken and let go all the time. Readers of one come and go while another stays, and the
 * lock does not tell which of them it is; only a moment without any says that all have gone. A
 * program that waits for us (mapped.bpf.c) takes the lock of its own map in a loop, so that one
 * look sees it locked more often than not. Hence many looks, as fast as they go.
 */
#include "state.bpf.h"

enum {
	/* Of mmap_lock.count: whoever waits for the lock sets these, but does not hold it. */
	WAITERS = 0x6,
	STEPS = 1 << 23,
	LOOKS = 2000, /* at a lock: some 100 us */
};

struct walk {
	struct rb_node *at, *from;
	struct mm_struct *own;
	struct wire_holder *args;
	struct mm_struct *locked;
	u32 since; /* the step that reached `at`. No count of looks: each is a state to verify */
};

/* With CONFIG_PREEMPT_RT nobody knows: 0. */
static __always_inline u64 lock_count(struct mm_struct *mm)
{
	if (!bpf_core_field_exists(mm->mmap_lock.count))
		return 0;
	return BPF_CORE_READ(mm, mmap_lock.count.counter) & ~WAITERS;
}

/* Without CONFIG_MEMCG nobody knows whose memory map it is. */
static __always_inline void describe(struct wire_holder *holder, struct mm_struct *mm)
{
	struct task_struct *thread = (void *)(BPF_CORE_READ(mm, mmap_lock.owner.counter) & ~7ull);
	const u32 state = BPF_CORE_READ(thread, __state);
	struct proc *proc;

	holder->mm = (u64)mm;
	holder->thread = (u64)thread;
	holder->switches = BPF_CORE_READ(thread, nvcsw) + BPF_CORE_READ(thread, nivcsw);
	holder->runnable = state == TASK_RUNNING || state == TASK_WAKING;
	holder->cpu = BPF_CORE_READ(thread, thread_info.cpu);
	holder->tgid = 0;
	if (bpf_core_field_exists(mm->owner))
		holder->tgid = BPF_CORE_READ(mm, owner, tgid);
	proc = holder->tgid ? find_proc(holder->tgid) : NULL;
	holder->waits_for_us = proc && is_of_run(proc);
}

static __always_inline bool is_skipped(const struct wire_holder *args, u64 mm)
{
	bool is = false;

	/* Without a branch, or the verifier takes all ways through it. */
	for (int i = 0; i < WIRE_HOLDERS_SKIPPED; i++)
		is |= args->skipped[i] == mm;
	return is;
}

/* One look at the lock of this node. Returns true if that was not the last one. */
static __always_inline bool look(struct walk *w, u32 step)
{
	const u64 offset = bpf_core_field_offset(struct vm_area_struct, shared.rb);
	struct vm_area_struct *vma = (void *)w->at - offset;
	struct mm_struct *mm = BPF_CORE_READ(vma, vm_mm);

	if (mm == w->own || !lock_count(mm) || is_skipped(w->args, (u64)mm))
		return false;
	if (step - w->since < LOOKS)
		return true;
	w->locked = mm;
	return false;
}

/* A look at a node, or one edge of the tree. A node is looked at when it is reached from above. */
static long walk_on(u32 step, struct walk *w)
{
	struct rb_node *at = w->at, *left, *right, *up;
	struct rb_node *from = w->from;

	if (!at)
		return 1;
	left = BPF_CORE_READ(at, rb_left);
	right = BPF_CORE_READ(at, rb_right);
	up = (void *)(BPF_CORE_READ(at, __rb_parent_color) & ~3ull);
	if (from == up && look(w, step))
		return 0;
	if (w->locked)
		return 1;
	w->since = step + 1;
	w->from = at;
	if (from == up)
		w->at = left ? left : right ? right : up;
	else if (from == left)
		w->at = right ? right : up;
	else
		w->at = up;
	return 0;
}

static long begin_walk(struct task_struct *task, struct vm_area_struct *vma, struct walk *w)
{
	w->at = BPF_CORE_READ(vma, vm_file, f_inode, i_mapping, i_mmap.rb_root.rb_node);
	return 0;
}

static long is_free(u32 i, struct walk *w)
{
	return !lock_count(w->locked);
}

/*
 * args->mm: of a holder that was found before, to look at its lock again; or 0, to find the first
 * that is locked and not among args->skipped. Then *args is about it; args->count is 0 if the lock
 * was seen free, and args->mm is 0 if there is none. Returns 1 if nobody knows, as the caller's own
 * memory map is busy.
 */
SEC("syscall")
int find_holder(struct wire_holder *args)
{
	struct walk w = {.args = args};
	bool seen_free = false;

	if (args->mm) {
		w.locked = (void *)args->mm;
		seen_free = bpf_loop(LOOKS, is_free, &w, 0) < LOOKS;
	} else {
		w.own = bpf_get_current_task_btf()->mm;
		if (bpf_find_vma(bpf_get_current_task_btf(), args->address, begin_walk, &w, 0))
			return 1;
		bpf_loop(STEPS, walk_on, &w, 0);
	}
	if (w.locked)
		describe(args, w.locked);
	args->count = w.locked && !seen_free ? lock_count(w.locked) : 0;
	return 0;
}
