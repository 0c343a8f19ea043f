/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vma.bpf.h - the mapping at an address of the current process, without a lock.
 *
 * bpf_find_vma() wants the lock of all mappings, which another thread may hold. And where
 * interrupts are off, as where the kernel sends a signal, it lets go of that lock by an irq_work of
 * the CPU, of which there is one: where two profilers run, it is always the first one's
 * (bpf_mmap_unlock_get_irq_work() in kernel/bpf/mmap_unlock_work.h). Both say -EBUSY.
 *
 * So we walk the kernel's tree ourselves (lib/maple_tree.c, from 6.1 on): nodes and mappings are
 * freed after a grace period of RCU, and a read of what is gone all the same just fails. What
 * another thread changes meanwhile may be seen or not; what is found has the address.
 *
 * Example: mappings at 1000-1fff and 3000-3fff. The root is a leaf with the pivots fff, 1fff, 2fff,
 * 3fff: the last address of each of its slots, of which the first and the third are empty. For 3008
 * three pivots are below: it is in the fourth slot.
 */
#ifndef QPROF_VMA_BPF_H
#define QPROF_VMA_BPF_H

#include "state.bpf.h"

enum {
	MAPLE_LEVELS = 16,
	MAPLE_PIVOTS = 15,     /* of a node; one that knows its gaps has 9 */
	MAPLE_LEAF = 1,	       /* enum maple_type: up to it nodes have mappings */
	MAPLE_ARANGE = 3,      /* it knows its gaps */
	MAPLE_NODE_MASK = 255, /* of an entry: what it says of the node it leads to */
	MAPLE_TYPE_SHIFT = 3,
};

struct vma_walk {
	u64 address;
	u64 entry; /* of the tree */
	u32 found; /* 1: it is a mapping, or 0 */
};

/* Whether the root leads to a node: xa_is_node() in linux/xarray.h. */
static __always_inline bool is_node(u64 root)
{
	return (root & 3) == 2 && root > 4096;
}

/*
 * Returns how many of a node's slots end below the address. A pivot of 0 is none, but for the
 * first; what is behind the pivots are pointers into the kernel, above each address of a process.
 * Without a branch, or the verifier takes all ways through it; and global, so that it does so once.
 */
__noinline u32 slots_below(u64 pivots, u64 address)
{
	u64 pivot[MAPLE_PIVOTS], is_one = 1;
	u32 below = 0;

	if (bpf_probe_read_kernel(pivot, sizeof(pivot), (void *)pivots))
		return 0;
	for (u32 i = 0; i < MAPLE_PIVOTS; i++) {
		if (i)
			is_one &= (pivot[i] | -pivot[i]) >> 63;
		below += is_one & (pivot[i] - address) >> 63 & ~(pivot[i] >> 63);
	}
	return below;
}

/* Returns 1 if a is 0, without a branch. */
static __always_inline u64 is_zero(u64 a)
{
	return (a - 1) >> 63 & ~a >> 63;
}

static long walk_node(u32 i, struct vma_walk *w)
{
	const u64 type = w->entry >> MAPLE_TYPE_SHIFT & 0xf, arange = is_zero(type ^ MAPLE_ARANGE);
	const u64 node = w->entry & ~(u64)MAPLE_NODE_MASK;
	const u64 pivots = bpf_core_field_offset(struct maple_range_64, pivot);
	const u64 slots = bpf_core_field_offset(struct maple_range_64, slot);
	const u64 apivots = bpf_core_field_offset(struct maple_arange_64, pivot);
	const u64 aslots = bpf_core_field_offset(struct maple_arange_64, slot);
	const u32 below = slots_below(node + pivots + arange * (apivots - pivots), w->address);

	if (bpf_probe_read_kernel(
		    &w->entry, sizeof(w->entry),
		    (void *)(node + slots + arange * (aslots - slots) + sizeof(w->entry) * below)))
		return 1;
	w->found = is_zero(type & ~(u64)MAPLE_LEAF);
	return w->found ? 1 : 0;
}

/* Returns the address of the vm_area_struct that has the address, or 0. Global, so that the
 * verifier takes its result for any number. */
__noinline u64 vma_at(u64 address)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct vma_walk w = {.address = address};
	struct vm_area_struct *vma;

	w.entry = (u64)BPF_CORE_READ(task, mm, mm_mt.ma_root);
	if (!is_node(w.entry))
		return 0;
	short_loop(MAPLE_LEVELS, walk_node, &w);
	vma = (void *)w.entry;
	if (!w.found || BPF_CORE_READ(vma, vm_start) > address ||
	    BPF_CORE_READ(vma, vm_end) <= address)
		return 0;
	return w.entry;
}

#endif
