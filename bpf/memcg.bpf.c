// SPDX-License-Identifier: GPL-2.0-only
/* memcg.bpf.c - what a checkpoint says of the tree's memory cgroup. */
#include "memcg.bpf.h"
#include "threads.bpf.h"

/* Returns the cgroup of the tree if it is that of the process or one above it; else NULL. */
static __always_inline struct mem_cgroup *memcg_of_tree(struct wire_tree *tree, struct proc *proc,
							bool begins)
{
	struct mem_cgroup *memcg = memcg_of(thread_at(first_node(proc->signal)));

	if (begins)
		tree->memcg = BPF_CORE_READ(memcg, css.serial_nr);
	for (u32 i = 0; i < MEMCG_MAX_LEVELS && memcg; i++, memcg = above(memcg))
		if (BPF_CORE_READ(memcg, css.serial_nr) == tree->memcg)
			return memcg;
	return NULL;
}

int read_charge(struct wire_checkpoint *c, struct proc *proc)
{
	struct mem_cgroup *memcg;

	if (!c || !proc)
		return 0;
	c->charged = c->most_charged = 0;
	if (!proc->signal || !bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return 0;
	memcg = memcg_of_tree(tree_of(proc->job), proc, c->what == WIRE_START);
	if (!memcg || !above(memcg))
		return 0;
	c->charged = not_negative(BPF_CORE_READ(memcg, memory.usage.counter));
	c->most_charged = BPF_CORE_READ(memcg, memory.watermark);
	return 0;
}
