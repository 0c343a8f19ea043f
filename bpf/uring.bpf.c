// SPDX-License-Identifier: GPL-2.0-only
/*
 * uring.bpf.c - reads and writes through io_uring, which rchar and wchar leave out.
 *
 * A request is counted when it completes, with the bytes it moved, for the process that submitted
 * it. Three kinds of requests complete without saying which request it was, or without a word:
 * - A multishot read completes many times, and only the last completion has the request. The others
 *   are found by (ring, user_data) in `multishots`, where the submission has noted them.
 * - A completion that finds the ring full has only (ring, user_data). It is looked up in `noted`,
 *   which keeps the latest request for each hash of the two. Nothing is ever removed, so a
 *   submission costs one store.
 * - A request with IOSQE_CQE_SKIP_SUCCESS has no completion if it succeeds. So its submission
 *   counts what it asks for, and keeps that in `skipped`. If it fails or comes out short, the
 * kernel drops the flag, and the completion replaces what was counted by the result.
 *
 * Example: a write of 64 KiB with that flag. Submission: extra_write +65536, noted in `skipped`.
 * The disk is full after 4 KiB: the completion says 4096, so extra_write moves by 4096 - 65536.
 *
 * user_data is the program's own, and several requests may have the same. If they are of different
 * kinds, the completion counts as the latest, and `ambiguous_requests` goes up.
 */
#include "io.bpf.h"
#include "uring.bpf.h"

enum {
	MAX_NOTED = 4096, /* a power of two */
	MAX_MULTISHOTS = 4096,
	MAX_SKIPPED = 16384,
	MAX_RINGS = 4096,
};

struct request {
	u64 ring; /* struct io_ring_ctx * */
	u64 user_data;
};

struct noted {
	struct request is;
	u64 counted; /* bytes, at its submission */
	u32 tgid;
	u16 kind;
	u16 kinds; /* of all with this user_data, since another request was noted here */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_NOTED);
	__type(key, u32);
	__type(value, struct noted);
} noted SEC(".maps");

struct multishot {
	u32 tgid;
	u32 live; /* requests with the same user_data */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_MULTISHOTS);
	__type(key, struct request);
	__type(value, struct multishot);
} multishots SEC(".maps");

struct skipped {
	struct request is;
	u64 counted;
	u32 tgid;
	u32 kind;
};

/*
 * struct io_kiocb * -> what was counted at its submission. The entry of a request that succeeded
 * stays until the kernel uses its memory for another request, which is submitted, or refused before
 * that (io_uring_req_failed).
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_SKIPPED);
	__type(key, u64);
	__type(value, struct skipped);
} skipped SEC(".maps");

/*
 * struct io_ring_ctx * of rings that were made while their maker was tracked: we have seen all
 * their requests. No event says when a ring goes. Once another is made at its address, the entry is
 * of that ring.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_RINGS);
	__type(key, u64);
	__type(value, u8);
} seen_rings SEC(".maps");

/* Set by the first such request. Until then no completion looks into the maps. */
bool multishot_seen, skip_seen;

static __always_inline void account_kind(u32 tgid, u32 kind, s64 bytes)
{
	account(tgid, kind & REQUEST_READS ? bytes : 0, kind & REQUEST_WRITES ? bytes : 0);
}

/* Any thread may post a completion: the bytes belong to the process that submitted. */
static __always_inline u32 submitter(struct io_kiocb *req)
{
	if (bpf_core_field_exists(req->task))
		return tgid_of(BPF_CORE_READ(req, task));
	return tgid_of(BPF_CORE_READ((struct io_kiocb___since_6_13 *)req, tctx, task));
}

/* Fibonacci hashing: consecutive numbers, and addresses of an array's elements, do not collide. */
static __always_inline u32 spread(u64 number)
{
	return number * 0x9e3779b97f4a7c15ull >> 52;
}

static __always_inline struct noted *slot_of(const struct request *is)
{
	u32 at = spread(is->user_data) ^ spread(is->ring);

	return bpf_map_lookup_elem(&noted, &at);
}

static __always_inline bool same(const struct request *a, const struct request *b)
{
	return a->ring == b->ring && a->user_data == b->user_data;
}

/* Returns NULL if it was submitted before its process was tracked, or another has its place. */
static __always_inline struct noted *find_noted(const struct request *is)
{
	struct noted *slot = slot_of(is);

	return slot && same(&slot->is, is) ? slot : NULL;
}

static __always_inline bool is_mixed(const struct noted *slot)
{
	return slot->kinds & (slot->kinds - 1) && slot->kinds != slot->kind;
}

static __always_inline struct request identity(struct io_kiocb *req)
{
	struct request is = {
		.ring = (u64)BPF_CORE_READ(req, ctx),
		.user_data = BPF_CORE_READ(req, cqe.user_data),
	};

	return is;
}

static __always_inline void forget_skipped(struct io_kiocb *req)
{
	u64 key = (u64)req;

	if (skip_seen)
		bpf_map_delete_elem(&skipped, &key);
}

/* Reads an argument of the program as a number: the verifier refuses arithmetic on pointers. */
static __always_inline u64 argument(const void *ctx, u32 i)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (const u64 *)ctx + i);
	return value;
}

SEC("tp_btf/io_uring_create")
int BPF_PROG(io_uring_created)
{
	u64 ring = argument(ctx, 1);
	u8 seen = 1;

	if (find_proc(current_tgid()))
		bpf_map_update_elem(&seen_rings, &ring, &seen, BPF_ANY);
	else
		bpf_map_delete_elem(&seen_rings, &ring);
	return 0;
}

/* ---- Submission -------------------------------------------------------------------------------
 */

static __always_inline void note(const struct request *is, u32 tgid, u32 kind, u64 counted)
{
	struct noted *slot = slot_of(is);

	if (!slot)
		return;
	slot->kinds = same(&slot->is, is) ? slot->kinds | kind : kind;
	slot->is = *is;
	slot->tgid = tgid;
	slot->kind = kind;
	slot->counted = counted;
}

static __always_inline void begin_multishot(const struct request *is, u32 tgid)
{
	struct multishot *known = bpf_map_lookup_elem(&multishots, is);
	struct multishot first = {.tgid = tgid, .live = 1};

	multishot_seen = true;
	if (known)
		atomic_add(&known->live, 1);
	else if (bpf_map_update_elem(&multishots, is, &first, BPF_NOEXIST))
		count(unknown_requests);
}

static __always_inline bool is_vectored(u8 opcode)
{
	return opcode == IORING_OP_READV || opcode == IORING_OP_WRITEV ||
	       opcode == IORING_OP_READV_FIXED || opcode == IORING_OP_WRITEV_FIXED;
}

/*
 * Returns how many bytes the request moves if all goes well. At its submission its buffers are
 * still the program's list: some kernels make their own when they issue the request.
 */
static __always_inline u64 asked_for(struct io_kiocb *req, u8 opcode)
{
	struct io_rw *rw = (void *)req; /* the command is its first member */
	struct io_ring_ctx *ring;
	u64 bytes;

	if (opcode == IORING_OP_SPLICE || opcode == IORING_OP_TEE) {
		bytes = BPF_CORE_READ((struct io_splice *)req, len);
	} else if (is_vectored(opcode)) {
		ring = BPF_CORE_READ(req, ctx);
		return vector_bytes(BPF_CORE_READ(rw, addr), BPF_CORE_READ(rw, len),
				    BPF_CORE_READ_BITFIELD_PROBED(ring, compat) ? 32 : 64);
	} else {
		bytes = BPF_CORE_READ(rw, len);
	}
	return bytes < MAX_TRANSFER ? bytes : MAX_TRANSFER;
}

static __always_inline u64 count_skipped(struct io_kiocb *req, const struct request *is, u32 tgid,
					 u8 opcode, u32 flags)
{
	struct skipped skip = {.is = *is, .tgid = tgid, .kind = kind_of(opcode)};
	u64 key = (u64)req;

	skip_seen = true;
	if (flags & IOSQE_BUFFER_SELECT) {
		count(unknown_requests); /* the kernel picks its buffer later: the length is open */
		return 0;
	}
	skip.counted = asked_for(req, opcode);
	if (bpf_map_update_elem(&skipped, &key, &skip, BPF_ANY)) {
		count(unknown_requests);
		return 0;
	}
	account_kind(tgid, skip.kind, skip.counted);
	return skip.counted;
}

static __always_inline int submitted(struct io_kiocb *req)
{
	u32 tgid = current_tgid(), flags, kind;
	struct request is;
	u64 counted = 0;
	u8 opcode;

	if (!find_proc(tgid))
		return 0;
	opcode = BPF_CORE_READ(req, opcode);
	flags = BPF_CORE_READ(req, flags);
	kind = kind_of(opcode);
	is = identity(req);
	forget_skipped(req);
	if (flags & IOSQE_CQE_SKIP_SUCCESS && kind != REQUEST_ELSE)
		counted = count_skipped(req, &is, tgid, opcode, flags);
	note(&is, tgid, kind, counted);
	if (opcode == IORING_OP_READ_MULTISHOT)
		begin_multishot(&is, tgid);
	return 0;
}

SEC("?tp_btf/io_uring_submit_req")
int BPF_PROG(io_uring_submitted, struct io_kiocb *req)
{
	return submitted(req);
}

/* Until 6.4. */
SEC("?tp_btf/io_uring_submit_sqe")
int BPF_PROG(io_uring_submitted_old, struct io_kiocb *req)
{
	return submitted(req);
}

/* It was never submitted, and completes with an error: forgets the request before in its memory. */
SEC("tp_btf/io_uring_req_failed")
int BPF_PROG(io_uring_refused, void *sqe, struct io_kiocb *req)
{
	forget_skipped(req);
	return 0;
}

/* ---- Completion -------------------------------------------------------------------------------
 */

/* Removes a request from `skipped`. Returns what was counted at its submission, or 0. */
static __always_inline u64 pop_skipped(struct io_kiocb *req)
{
	u64 key = (u64)req, counted;
	struct skipped *skip = bpf_map_lookup_elem(&skipped, &key);
	struct request is;

	if (!skip)
		return 0;
	is = identity(req);
	if (!same(&skip->is, &is) || skip->tgid != submitter(req))
		return 0;
	counted = skip->counted;
	bpf_map_delete_elem(&skipped, &key);
	return counted;
}

static __always_inline void end_multishot(const struct request *is)
{
	struct multishot *known = bpf_map_lookup_elem(&multishots, is);

	if (known && atomic_add(&known->live, -1) <= 1)
		bpf_map_delete_elem(&multishots, is);
}

/*
 * Returns true if a completion that belongs to no noted request may be a multishot read's. We miss
 * the submission only if it was before the process was tracked, so only in an older ring. Such a
 * completion brings a buffer of a group; besides, only a multishot receive does, not a poll or an
 * accept.
 */
static __always_inline bool may_be_read(const struct request *is, u32 flags)
{
	const u32 expected = IORING_CQE_F_BUFFER | IORING_CQE_F_MORE;

	return (flags & expected) == expected && !bpf_map_lookup_elem(&seen_rings, &is->ring);
}

/* A completion without a request: of a multishot request, or a message, which nobody submitted. */
static __always_inline int completed_in_between(const struct request *is, s32 bytes, u32 flags)
{
	struct multishot *known = multishot_seen ? bpf_map_lookup_elem(&multishots, is) : NULL;
	struct noted *slot;

	if (bytes <= 0)
		return 0;
	if (known) {
		slot = find_noted(is);
		if (slot && is_mixed(slot))
			count(ambiguous_requests);
		account(known->tgid, bytes, 0);
	} else if (may_be_read(is, flags) && find_proc(current_tgid()) && !find_noted(is)) {
		count(unknown_requests);
	}
	return 0;
}

/* The first argument of the event is the ring. */
static __always_inline struct request request_of(const void *ctx, u64 user_data)
{
	return (struct request){.ring = argument(ctx, 0), .user_data = user_data};
}

static __always_inline int completed(const void *ctx, struct io_kiocb *req, u64 user_data,
				     s32 bytes, u32 flags)
{
	const struct request is = request_of(ctx, user_data);
	u64 counted = 0;
	s64 moved;
	u8 opcode;
	u32 kind;

	if (!req)
		return completed_in_between(&is, bytes, flags);
	if (bytes <= 0 && !skip_seen && !multishot_seen)
		return 0;
	opcode = BPF_CORE_READ(req, opcode);
	kind = kind_of(opcode);
	if (kind == REQUEST_ELSE)
		return 0;
	if (opcode == IORING_OP_READ_MULTISHOT)
		end_multishot(&is);
	if (skip_seen)
		counted = pop_skipped(req);
	moved = (bytes > 0 ? bytes : 0) - (s64)counted;
	if (moved)
		account_kind(submitter(req), kind, moved);
	return 0;
}

/* The loader loads the one of these two whose arguments the kernel has. */
SEC("?tp_btf/io_uring_complete")
int BPF_PROG(io_uring_done, void *ring, void *req, struct io_uring_cqe *cqe)
{
	return completed(ctx, req, BPF_CORE_READ(cqe, user_data), BPF_CORE_READ(cqe, res),
			 BPF_CORE_READ(cqe, flags));
}

/* Until 6.13: the parts of the completion one by one. */
SEC("?tp_btf/io_uring_complete")
int BPF_PROG(io_uring_done_old, void *ring, void *req, u64 user_data, int res, u32 flags)
{
	return completed(ctx, req, user_data, res, flags);
}

/* Comes instead of io_uring_complete when the ring is full, and does not have the request. */
SEC("tp_btf/io_uring_cqe_overflow")
int BPF_PROG(io_uring_overflowed, void *ring, u64 user_data, s32 bytes, u32 flags)
{
	const struct request is = request_of(ctx, user_data);
	struct noted *slot = find_noted(&is);

	if (multishot_seen && !(flags & IORING_CQE_F_MORE))
		end_multishot(&is);
	if (!slot) {
		if (flags & IORING_CQE_F_MORE)
			return completed_in_between(&is, bytes, flags);
		if (bytes > 0 && find_proc(current_tgid()))
			count(unknown_requests);
		return 0;
	}
	if (is_mixed(slot) || slot->counted)
		count(ambiguous_requests);
	account_kind(slot->tgid, slot->kind, (bytes > 0 ? bytes : 0) - (s64)slot->counted);
	return 0;
}

/*
 * A request is cancelled, since a request before it in its chain failed. If that wanted no
 * completion on success, this one has none at all.
 */
SEC("tp_btf/io_uring_fail_link")
int BPF_PROG(io_uring_link_failed, struct io_kiocb *req, struct io_kiocb *link)
{
	u64 counted;

	if (!skip_seen || !(BPF_CORE_READ(link, flags) & IOSQE_CQE_SKIP_SUCCESS))
		return 0;
	counted = pop_skipped(link);
	if (counted)
		account_kind(submitter(link), kind_of(BPF_CORE_READ(link, opcode)), -(s64)counted);
	return 0;
}
