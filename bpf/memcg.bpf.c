// SPDX-License-Identifier: GPL-2.0-only
/* memcg.bpf.c - what a checkpoint says of the tree's memory cgroup. */
#include "memcg.bpf.h"
#include "threads.bpf.h"

struct search {
	u64 at; /* struct mem_cgroup * */
	u64 serial;
	u32 found; /* 1: it is at `at` */
};

static long look_at_cgroup(u32 i, struct search *s)
{
	struct mem_cgroup *memcg = (void *)s->at;

	if (!memcg)
		return 1;
	if (BPF_CORE_READ(memcg, css.serial_nr) == s->serial) {
		s->found = 1;
		return 1;
	}
	s->at = (u64)above(memcg);
	return 0;
}

/* Returns the cgroup of the tree if it is that of the process or one above it; else NULL. */
static __always_inline struct mem_cgroup *memcg_of_tree(struct wire_tree *tree, struct proc *proc,
							bool begins)
{
	struct mem_cgroup *memcg = memcg_of(thread_at(first_node(proc->signal)));
	struct search search = {.at = (u64)memcg};

	if (begins)
		tree->memcg = BPF_CORE_READ(memcg, css.serial_nr);
	search.serial = tree->memcg;
	short_loop(MEMCG_MAX_LEVELS, look_at_cgroup, &search);
	return search.found ? (struct mem_cgroup *)search.at : NULL;
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
