/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io.bpf.h - what the files that count bytes share: the account of a process, the calls that are
 * under way, and the length of a program's list of buffers.
 */
#ifndef QPROF_IO_BPF_H
#define QPROF_IO_BPF_H

#include "pids.bpf.h"

enum {
	MAX_CALLS = 4096,   /* threads in a watched function of a library at a time */
	MAX_VECTORS = 1024, /* UIO_MAXIOV */
	MAX_TRANSFER = 0x7fffffff & ~4095, /* MAX_RW_COUNT: a call moves no more */
};

/*
 * Adds to a sum, and keeps it from staying below 0 when bytes are taken back. A sum that would be
 * below 0 is wrong by some request, and `quality` says so. We take first and then give back what is
 * missing: others add at the same time, and this way no step has to be repeated.
 *
 * Example: 100 are in the sum, 160 are taken back: it is -60 for a moment, and then 60 are added.
 */
static __always_inline void move_sum(u64 *sum, s64 bytes)
{
	s64 now = (s64)atomic_add(sum, bytes) + bytes;

	if (bytes >= 0 || now >= 0)
		return;
	atomic_add(sum, now > bytes ? -now : -bytes);
	count(ambiguous_requests);
}

/* Adds bytes to the account of a process, if it is tracked. Negative ones are taken back. */
static __always_inline void account(u32 tgid, s64 read, s64 written)
{
	struct proc *proc = find_proc(tgid);

	if (!proc || proc->waiting)
		return;
	if (read)
		move_sum(&proc->gone.extra_read, read);
	if (written)
		move_sum(&proc->gone.extra_write, written);
}

static __always_inline u32 current_tgid(void)
{
	return current_id() >> 32;
}

/* The arguments of a library's function, by current_id(), until it returns. */
struct call {
	u64 arg[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_CALLS);
	__type(key, u64);
	__type(value, struct call);
} calls __weak SEC(".maps");

/* Removes the arguments of the function that returns now. Returns false if it was not seen to
 * begin. */
static __always_inline bool pop_call(struct call *call)
{
	u64 id = current_id();
	struct call *known = bpf_map_lookup_elem(&calls, &id);

	if (!known)
		return false;
	*call = *known;
	bpf_map_delete_elem(&calls, &id);
	return true;
}

/*
 * Returns how many bytes n buffers have together, at most what one call moves. at: the address of a
 * struct iovec[] in the current process; bits: 32 for a 32-bit program, else 64. What cannot be
 * read is left out, and counted in `quality`.
 */
u64 vector_bytes(u64 at, u32 n, u32 bits);

#endif
