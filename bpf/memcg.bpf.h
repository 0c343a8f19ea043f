/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memcg.bpf.h - memory cgroups: which a process is in, and what the kernel charges to it.
 *
 * The kernel charges a page to one cgroup, and to all above it: to the cgroup of whoever touches
 * the page first. So the charge counts once what a sum of RSS counts in each process, and has what
 * no RSS has: page cache that nobody maps, and the kernel's own memory.
 */
#ifndef QPROF_MEMCG_BPF_H
#define QPROF_MEMCG_BPF_H

#include "state.bpf.h"

enum { MEMCG_MAX_LEVELS = 16 };

/* Of a process, its leader's counts: the kernel charges what any thread touches to that one. */
static __always_inline struct mem_cgroup *memcg_of(struct task_struct *task)
{
	const u32 id = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	void *css_set = BPF_CORE_READ(task, cgroups);
	struct mem_cgroup *memcg = NULL;

	bpf_probe_read_kernel(&memcg, sizeof(memcg),
			      css_set + bpf_core_field_offset(struct css_set, subsys) +
				      id * sizeof(memcg));
	return memcg;
}

static __always_inline struct mem_cgroup *above(struct mem_cgroup *memcg)
{
	return (struct mem_cgroup *)BPF_CORE_READ(memcg, css.parent);
}

/*
 * Fills in what is charged to the cgroup of the tree: the one that the process of WIRE_START was in
 * then. 0 if this process is neither in that nor in one below it by now, for then the tree is in
 * several; or if it is the root, which the kernel charges nothing to.
 */
int read_charge(struct wire_checkpoint *c, struct proc *proc);

#endif
