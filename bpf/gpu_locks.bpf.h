/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_locks.bpf.h - memory of the host that HSA locks several times: for gpu_call.bpf.c. */
#ifndef QPROF_GPU_LOCKS_BPF_H
#define QPROF_GPU_LOCKS_BPF_H

#include "gpu_ledger.bpf.h"

/*
 * HSA locks memory of the host as often as it is asked to, and unlocks it after as many unlocks. It
 * counts once, by its largest size. Returns true if it is counted already.
 */
static __noinline bool is_locked_again(const struct gpu_hit *h, u64 at, struct gpu_live *live)
{
	const struct gpu_key key = key_of(h, h->site->space, at);
	struct gpu_live *locked = bpf_map_lookup_elem(&gpu_ledger, &key);

	if (h->site->does != WIRE_GPU_REGISTERS || h->site->vendor != WIRE_GPU_AMD || !locked)
		return false;
	live->refs = atomic_add(&locked->refs, 1) + 1;
	return live->bytes <= locked->bytes;
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
