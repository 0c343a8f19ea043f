/* SPDX-License-Identifier: GPL-2.0-only */
/* log.bpf.h - processes that are listened to; what they write is in log.bpf.c. */
#ifndef QPROF_LOG_BPF_H
#define QPROF_LOG_BPF_H

#include "snapshot.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_MAX_LISTENING);
	__type(key, u32); /* tgid */
	__type(value, struct wire_listening);
} listening __weak SEC(".maps");

outlined struct wire_listening *listening_to(u32 tgid)
{
	return bpf_map_lookup_elem(&listening, &tgid);
}

/* A fork: the child is listened to from its first instruction on, if its parent's children are.
 * Returns 1 if it is. */
int listen_to_child(u32 parent, u32 child, u64 started_ns);

/* Sends WIRE_TEXT_END or WIRE_TEXT_DEATH, once, if the process is listened to. */
static __always_inline void end_texts(struct proc *proc, u32 site, u32 tid)
{
	struct wire_listening *l = listening_to(proc->tgid);

	if (!l || l->started_ns != proc->started_ns || l->ended || tree_of(proc->job)->finished)
		return;
	l->ended = 1;
	if (emit_milestone(proc, WIRE_TEXT, site, tid))
		return;
	atomic_add(&tree_of(proc->job)->epoch, 1); /* a hole in the sequence */
	count(lost_checkpoints);
}

#endif
