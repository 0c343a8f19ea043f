/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * io.bpf.h - what the files that count bytes share: whose account, and how much a user's list of
 * buffers holds.
 */
#ifndef QPROF_IO_BPF_H
#define QPROF_IO_BPF_H

#include "pids.bpf.h"

enum {
	MAX_CALLS = 4096,		   /* threads that are in a watched function of a library */
	MAX_VECTORS = 1024,		   /* UIO_MAXIOV */
	MAX_TRANSFER = 0x7fffffff & ~4095, /* MAX_RW_COUNT: a call moves no more */
};

/*
 * Adds to a sum that never stays below 0, whatever is taken back. One that would is wrong by some
 * request, and `quality` says so. The missing is given back, not kept from being taken: others add
 * at the same time, and nothing has to be tried again.
 */
static __always_inline void move_sum(u64 *sum, s64 bytes)
{
	s64 now = (s64)atomic_add(sum, bytes) + bytes;

	if (bytes >= 0 || now >= 0)
		return;
	atomic_add(sum, now > bytes ? -now : -bytes);
	count(ambiguous_requests);
}

/* Adds to what a process has moved, if it is tracked; less than 0 takes back. */
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

/* What a library's function was given, by current_id(), until it returns. */
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

/* Takes out what the function that returns now was given. False: nobody saw it begin. */
static __always_inline bool take_call(struct call *call)
{
	u64 id = current_id();
	struct call *known = bpf_map_lookup_elem(&calls, &id);

	if (!known)
		return false;
	*call = *known;
	bpf_map_delete_elem(&calls, &id);
	return true;
}

/* How many bytes n buffers have together, as a call takes them; at: the current process's struct
 * iovec[], 32: of a 32-bit program. What cannot be read is counted in `quality` and left out. */
u64 vector_bytes(u64 at, u32 n, u32 bits);

#endif
