// SPDX-License-Identifier: GPL-2.0-only
/*
 * death.bpf.c - the kernel's OOM killer takes a process: which limit was reached, who asked for
 * memory, and what the process and its tree hold, before anything is freed.
 *
 * mark_victim() says which task the kernel has chosen. It says so of tasks that die anyway, too: a
 * kill -9, or an exit, came first. So it counts only if the kernel has just sent the task a SIGKILL
 * of its own, as the first to end it. Example:
 *   signal_generate(SIGKILL, from the kernel, task A)   asked for by a thread of B, on CPU 1
 *   mark_victim(A)                                      by the same thread, on CPU 1: A is killed
 *   mark_victim(C)                                      no such SIGKILL: C was about to exit
 *
 * Which limit: while a memory cgroup has the OOM killer look for a victim, it and all cgroups below
 * it have oom_lock set (mem_cgroup_oom_trylock() in mm/memcontrol.c). So of the cgroups above the
 * asker, the topmost of those with oom_lock is the one. Who writes to the memory of another process
 * (a debugger, or whoever sets a uprobe) asks for that one's cgroup: then it is above the victim.
 * Nothing is locked when memory.max is lowered (v2): then a cgroup above the victim has more than
 * it may have. Else it is the machine.
 */
#include "ending.bpf.h"
#include "memcg.bpf.h"
#include "mms.bpf.h"
#include "pids.bpf.h"
#include "rss.bpf.h"
#include "snapshot.bpf.h"

enum {
	DELIVERED = 0, /* TRACE_SIGNAL_DELIVERED: nothing else was about to end the task */
	NAME_BYTES = 256,
	CHARGE_BATCH = 64, /* MEMCG_CHARGE_BATCH: pages that a CPU takes in advance */
};

/* The last SIGKILL that the kernel sent from a CPU. mark_victim() follows on the same CPU, since
 * the kernel holds a spin lock meanwhile. */
struct kill {
	u64 sender, victim; /* struct task_struct * */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct kill);
} last_kill SEC(".maps");

/* All signals of the machine come here: what ends nobody leaves at the first comparison. */
SEC("raw_tp/signal_generate")
int BPF_PROG(signal_is_sent, int signal, struct kernel_siginfo *info, struct task_struct *task,
	     int group, int result)
{
	struct kill *kill;

	if (result != DELIVERED || !ends_by_default(signal))
		return 0;
	kill = here(&last_kill);
	if (!kill)
		return 0;
	if (signal == SIGKILL && (u64)info == BY_KERNEL) {
		kill->sender = (u64)bpf_get_current_task();
		kill->victim = (u64)task;
	}
	if (find_proc(tgid_of(task)))
		lead_to_changes(ctx); /* to tell_signal() */
	return 0;
}

/* ---- Which limit ------------------------------------------------------------------------------
 */

static __always_inline bool is_full(u64 usage, u64 max)
{
	return usage + CHARGE_BATCH * config.nr_cpus >= max;
}

static __always_inline bool is_memory_full(struct mem_cgroup *memcg)
{
	return is_full(BPF_CORE_READ(memcg, memory.usage.counter),
		       BPF_CORE_READ(memcg, memory.max));
}

/* From a cgroup to the root. By bpf_loop(): the verifier goes through one step instead of all. */
struct climb {
	u64 at, found; /* struct mem_cgroup *, or 0 */
};

/* Without oom_lock in this kernel, the first that is full is the one that refused. */
static long look_whether_refusing(u32 i, struct climb *c)
{
	struct mem_cgroup *memcg = (void *)c->at;
	const bool has_lock = bpf_core_field_exists(memcg->oom_lock);
	bool refuses;

	if (!memcg)
		return 1;
	refuses = has_lock ? BPF_CORE_READ(memcg, oom_lock) : is_memory_full(memcg);
	if (!refuses && c->found)
		return 1;
	if (refuses)
		c->found = c->at;
	if (refuses && !has_lock)
		return 1;
	c->at = (u64)above(memcg);
	return 0;
}

static __always_inline struct mem_cgroup *refusing(struct mem_cgroup *memcg)
{
	struct climb climb = {.at = (u64)memcg};

	short_loop(MEMCG_MAX_LEVELS, look_whether_refusing, &climb);
	return (struct mem_cgroup *)climb.found;
}

static long look_whether_overfull(u32 i, struct climb *c)
{
	struct mem_cgroup *memcg = (void *)c->at;

	if (!memcg)
		return 1;
	if ((u64)BPF_CORE_READ(memcg, memory.usage.counter) > BPF_CORE_READ(memcg, memory.max)) {
		c->found = c->at;
		return 1;
	}
	c->at = (u64)above(memcg);
	return 0;
}

static __always_inline struct mem_cgroup *overfull(struct mem_cgroup *memcg)
{
	struct climb climb = {.at = (u64)memcg};

	short_loop(MEMCG_MAX_LEVELS, look_whether_overfull, &climb);
	return (struct mem_cgroup *)climb.found;
}

static __always_inline void fill_limit(struct wire_death *d, struct mem_cgroup *memcg)
{
	d->usage = BPF_CORE_READ(memcg, memory.usage.counter);
	d->limit = BPF_CORE_READ(memcg, memory.max);
	if (is_full(d->usage, d->limit) ||
	    !is_full(BPF_CORE_READ(memcg, memsw.usage.counter), BPF_CORE_READ(memcg, memsw.max)))
		return;
	d->with_swap = 1;
	d->usage = BPF_CORE_READ(memcg, memsw.usage.counter);
	d->limit = BPF_CORE_READ(memcg, memsw.max);
}

static __always_inline struct kernfs_node *parent_of(struct kernfs_node *node)
{
	if (bpf_core_field_exists(node->__parent))
		return BPF_CORE_READ(node, __parent);
	return (struct kernfs_node *)BPF_CORE_READ((struct kernfs_node___old *)node, parent);
}

/* A path in the making, from its end. */
struct path_climb {
	struct wire_death *d;
	u64 node;
	u32 at; /* bytes of it so far */
	bool at_root;
};

/* The root of the hierarchy has a node without a parent, which is no directory of the path. */
static long add_component(u32 i, struct path_climb *c)
{
	struct kernfs_node *node = (void *)c->node, *parent;
	const u32 at = c->at;
	long len;

	parent = node ? parent_of(node) : NULL;
	c->at_root = !parent && node;
	if (!parent || at > WIRE_PATH_MAX - NAME_BYTES)
		return 1;
	len = bpf_probe_read_kernel_str(c->d->path + at, NAME_BYTES, BPF_CORE_READ(node, name));
	if (len < 0)
		return 1;
	c->at += len;
	c->d->components++;
	c->node = (u64)parent;
	return 0;
}

static __always_inline void fill_path(struct wire_death *d, struct mem_cgroup *memcg)
{
	struct path_climb climb = {.d = d, .node = (u64)BPF_CORE_READ(memcg, css.cgroup, kn)};

	short_loop(MEMCG_MAX_LEVELS, add_component, &climb);
	d->cut = !climb.at_root;
}

static __always_inline void find_limit(struct wire_death *d, struct task_struct *victim)
{
	struct mem_cgroup *memcg;

	d->scope = WIRE_SCOPE_MACHINE;
	d->usage = d->limit = 0;
	d->with_swap = d->cut = d->components = d->reserved = 0;
	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return;
	memcg = refusing(memcg_of((void *)bpf_get_current_task()));
	if (!memcg)
		memcg = refusing(memcg_of(victim));
	if (!memcg)
		memcg = overfull(memcg_of(victim));
	if (!memcg)
		return;
	d->scope = WIRE_SCOPE_CGROUP;
	fill_limit(d, memcg);
	fill_path(d, memcg);
}

/* ---- The kill ---------------------------------------------------------------------------------
 */

static __always_inline void emit_death(struct proc *proc, struct task_struct *victim)
{
	struct wire_death *d = bpf_ringbuf_reserve(&control, sizeof(*d), 0);

	if (!d) {
		count(lost_process_events);
		return;
	}
	recount(memory_of(proc));
	fill_header(&d->h, WIRE_DEATH, sizeof(*d), proc->job, proc->tgid, tid_of(victim),
		    proc->started_ns);
	d->asked_by = current_id() >> 32;
	bpf_get_current_comm(d->asked_by_comm, sizeof(d->asked_by_comm));
	memory_of_tree(proc->job, &d->tree);
	process_memory(proc, false, &d->own);
	find_limit(d, victim);
	bpf_ringbuf_submit(d, BPF_RB_NO_WAKEUP);
	wake_at_once();
}

/* Returns the task that the kernel has just killed from here, or NULL. */
static __always_inline struct task_struct *just_killed(void)
{
	struct kill *kill = here(&last_kill);
	struct task_struct *victim;

	if (!kill || kill->sender != (u64)bpf_get_current_task())
		return NULL;
	victim = (struct task_struct *)kill->victim;
	kill->sender = 0;
	return victim;
}

static __always_inline void tell(struct task_struct *victim)
{
	struct proc *proc = find_proc(tgid_of(victim));

	if (proc && !proc->waiting)
		emit_death(proc, victim);
}

SEC("?tp_btf/mark_victim")
int BPF_PROG(oom_kills, struct task_struct *task)
{
	struct task_struct *victim = just_killed();

	if (victim && victim == task)
		tell(victim);
	return 0;
}

/* Until 6.8 it had the number of the task, in the initial pid namespace. */
SEC("?tp_btf/mark_victim")
int BPF_PROG(oom_kills_old, int pid)
{
	struct task_struct *victim = just_killed();

	if (victim && BPF_CORE_READ(victim, pid) == pid)
		tell(victim);
	return 0;
}
