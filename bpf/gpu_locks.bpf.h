/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_locks.bpf.h - memory of the host that HSA locks several times: for gpu_call.bpf.c. */
#ifndef QPROF_GPU_LOCKS_BPF_H
#define QPROF_GPU_LOCKS_BPF_H

#include "gpu_ledger.bpf.h"

enum { GROW_TRIES = 16 };

/* Other threads may lock the same at this time: the entry stays, and each byte is counted once. */
static __always_inline void grow_lock(const struct gpu_hit *h, struct gpu_live *locked, u64 bytes)
{
	_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < GROW_TRIES; i++)
	{
		const u64 before = *(volatile u64 *)&locked->bytes;

		if (bytes <= before)
			return;
		if (__sync_val_compare_and_swap(&locked->bytes, before, bytes) != before)
			continue;
		add_bytes(h, locked, bytes - before);
		return;
	}
	count(gpu.unkept);
}

/*
 * HSA locks memory of the host as often as it is asked to, and unlocks it after as many unlocks. It
 * counts once, by its largest size. Returns true if it is there already, and counts it.
 */
static __noinline bool is_locked_again(const struct gpu_hit *h, u64 at, const struct gpu_live *live)
{
	const struct gpu_key key = key_of(h, h->site->space, at);
	struct gpu_live *locked = bpf_map_lookup_elem(&gpu_ledger, &key);

	if (h->site->does != WIRE_GPU_REGISTERS || h->site->vendor != WIRE_GPU_AMD || !locked)
		return false;
	atomic_add(&locked->refs, 1);
	grow_lock(h, locked, live->bytes);
	return true;
}

/* Returns true if memory of the host stays locked after this unlock. */
static __noinline bool drop_lock(const struct gpu_hit *h)
{
	const struct gpu_key key = key_of(h, h->site->space, key_argument(h));
	struct gpu_live *locked = bpf_map_lookup_elem(&gpu_ledger, &key);

	if (!locked || !locked->refs)
		return false;
	if (atomic_add(&locked->refs, -1))
		return true;
	atomic_add(&locked->refs, 1); /* another thread was faster */
	return false;
}

static __noinline int lock_again(const struct gpu_hit *h)
{
	const struct gpu_key key = key_of(h, h->site->space, key_argument(h));
	struct gpu_live *locked = bpf_map_lookup_elem(&gpu_ledger, &key);

	if (locked)
		atomic_add(&locked->refs, 1);
	return 0;
}

#endif
