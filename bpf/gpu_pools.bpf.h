/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_pools.bpf.h - which device a pool of memory is on: for gpu_call.bpf.c. */
#ifndef QPROF_GPU_POOLS_BPF_H
#define QPROF_GPU_POOLS_BPF_H

#include "gpu_ledger.bpf.h"

enum {
	HSA_INFO_DEVICE = 17, /* hsa_agent_info_t: the type of the device */
	HSA_GPU = 1,
};

static __noinline int know_place(const struct gpu_hit *h, u32 space, u64 at, u32 place)
{
	const struct gpu_key key = key_of(h, space, at);
	const struct gpu_live live = {.place = place};

	bpf_map_update_elem(&gpu_ledger, &key, &live, BPF_ANY);
	return 0;
}

static __always_inline int pool_made(const struct gpu_hit *h)
{
	struct gpu_live live = {};

	find_place(h, &live);
	return know_place(h, WIRE_GPU_POOLS_OF, answer(h), live.place);
}

/* GPUs are numbered in the order in which programs ask about them, as HIP does. */
static __always_inline int agent_told(const struct gpu_hit *h)
{
	const u64 agent = key_argument(h);
	u32 type = 0;

	if (argument(h, 1) != HSA_INFO_DEVICE || !read_user(&type, sizeof(type), argument(h, 2)) ||
	    known_place(h, WIRE_GPU_AGENTS, agent) != WIRE_GPU_UNKNOWN)
		return 0;
	return know_place(h, WIRE_GPU_AGENTS, agent,
			  type == HSA_GPU ? place_of_device(atomic_add(&h->own->agents, 1))
			  : type	  ? WIRE_GPU_UNKNOWN
					  : WIRE_GPU_PINNED);
}

/*
 * HSA tells of the pools of an agent by calling back, where programs ask about each. What they ask
 * about a pool once that is over says nothing about its agent.
 */
static __always_inline int ask_of_pool(struct gpu_hit *h, u64 key)
{
	struct gpu_thread *thread = thread_of(h);
	u32 place;

	if (!thread)
		return 0;
	if (h->site->does == WIRE_GPU_POOLS) {
		thread->agent = key;
		return 0;
	}
	place = known_place(h, WIRE_GPU_AGENTS, thread->agent);
	if (thread->agent && place != WIRE_GPU_UNKNOWN)
		know_place(h, WIRE_GPU_POOLS_OF, key, place);
	return 0;
}

static __always_inline int pools_told(u64 id)
{
	struct gpu_thread *thread = bpf_map_lookup_elem(&gpu_threads, &id);

	if (thread)
		thread->agent = 0;
	return 0;
}

#endif
