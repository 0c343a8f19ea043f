/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * file_uring.bpf.h - files that chosen processes use through io_uring: these requests are no system
 * calls.
 *
 * A read or write uses its file as it is submitted. The file is a descriptor, or an index into the
 * files that were registered with the ring. What is opened through the ring is known by its own
 * name, not by that of a link to it: the latter is gone by the time that the file is there.
 *
 * A registered file stays in use when its descriptor is closed, but nobody is told when it goes. So
 * its phase ends with the descriptor. If that was closed before the first read, the file is
 * counted.
 */
#ifndef QPROF_FILE_URING_BPF_H
#define QPROF_FILE_URING_BPF_H

#include "file.bpf.h"
#include "uring.bpf.h"

enum {
	MAX_CLOSING = 1024,
	SPLICE_F_FD_IN_FIXED = 1u << 31,
};

/* struct io_kiocb * of a request to close a descriptor -> its struct file * */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_CLOSING);
	__type(key, u64);
	__type(value, u64);
} closing __weak SEC(".maps");

static __always_inline u64 descriptor(u32 fd)
{
	struct file **files;
	u32 max;

	return (u64)file_of(fd, &files, &max);
}

/* ---- Registered files -------------------------------------------------------------------------
 */

/* The lowest bits of a pointer to a file say what kind of file it is. */
enum { FILE_BITS = 7 };

static __always_inline u64 registered_until_6_12(struct io_ring_ctx *ring, u32 at)
{
	struct io_ring_ctx___until_6_12 *old = (void *)ring;
	/* Of struct io_fixed_file, which is one word. Its name is not asked for: what the kernel's
	 * own types lack is looked for in modules, and that takes CAP_SYS_ADMIN. */
	u64 *files = BPF_CORE_READ(old, file_table.files), file = 0;

	if (at < BPF_CORE_READ(old, nr_user_files))
		bpf_probe_read_kernel(&file, sizeof(file), files + at);
	return file;
}

static __always_inline u64 registered(struct io_ring_ctx *ring, u32 at)
{
	struct io_rsrc_node **nodes, *node = NULL;
	u64 file;

	if (bpf_core_field_exists(ring->file_table.data)) {
		nodes = BPF_CORE_READ(ring, file_table.data.nodes);
		if (at < BPF_CORE_READ(ring, file_table.data.nr))
			bpf_probe_read_kernel(&node, sizeof(node), nodes + at);
		file = node ? BPF_CORE_READ(node, file_ptr) : 0;
	} else {
		file = registered_until_6_12(ring, at);
	}
	return file & ~(u64)FILE_BITS;
}

/* ---- Requests ---------------------------------------------------------------------------------
 */

/* Takes a file by its own name. met: directions of which nobody is to be told. */
static __always_inline void find_file(struct caller *c, u64 at, u32 met)
{
	struct file *file = (void *)at;
	struct opening *o;
	const struct wire_watching *how = watched(&o);
	long len;

	if (!how || !file)
		return;
	forget_former(c, file);
	len = bpf_probe_read_kernel_str(o->room.path, PATH_BYTES,
					BPF_CORE_READ(file, f_path.dentry, d_name.name));
	if (len > 1 && len < PATH_BYTES && is_wanted(how, &o->room, len - 1))
		add_handle(how, o, len - 1, file, met);
}

/* bits: one of them, or both. */
static __always_inline void use_file(struct caller *c, u64 file, u32 bits)
{
	struct handle *h = file ? handle_of(c, file) : NULL;

	if (h && bits & USE_READ)
		use_handle(c, h, USE_READ);
	if (h && bits & USE_WRITE)
		use_handle(c, h, USE_WRITE);
}

static __always_inline u32 bits_of(u32 kind)
{
	return (kind & REQUEST_READS ? USE_READ : 0) | (kind & REQUEST_WRITES ? USE_WRITE : 0);
}

/* A file of a splice, which has two. */
static __always_inline u64 file_of_splice(struct io_kiocb *req)
{
	struct io_splice *splice = (void *)req; /* the command is its first member */
	const u32 fd = BPF_CORE_READ(splice, splice_fd_in);

	return BPF_CORE_READ(splice, flags) & SPLICE_F_FD_IN_FIXED
		       ? registered(BPF_CORE_READ(req, ctx), fd)
		       : descriptor(fd);
}

static __always_inline void use(struct caller *c, struct io_kiocb *req, u32 flags, u32 kind)
{
	const u32 fd = BPF_CORE_READ(req, cqe.fd); /* until it has completed */
	const bool is_registered = flags & IOSQE_FIXED_FILE;
	const u64 file = is_registered ? registered(BPF_CORE_READ(req, ctx), fd) : descriptor(fd);

	if (is_registered && file && !handle_of(c, file))
		find_file(c, file, USE_READ | USE_WRITE);
	if (!c->reader)
		return;
	if (kind == (REQUEST_READS | REQUEST_WRITES)) {
		use_file(c, file_of_splice(req), USE_READ);
		kind = REQUEST_WRITES;
	}
	use_file(c, file, bits_of(kind));
}

/* It is gone when the request is through. */
static __always_inline void will_close(struct caller *c, struct io_kiocb *req, u32 flags)
{
	struct io_close *close = (void *)req;
	const u64 key = (u64)req, file = descriptor(BPF_CORE_READ(close, fd));

	if (BPF_CORE_READ(close, file_slot) || !handle_of(c, file))
		return;
	if (flags & IOSQE_CQE_SKIP_SUCCESS || bpf_map_update_elem(&closing, &key, &file, BPF_ANY))
		close_handle(c, file, BPF_CORE_READ(close, fd));
}

static __always_inline void uring_submitted(struct caller *c, struct io_kiocb *req)
{
	const u32 kind = kind_of(BPF_CORE_READ(req, opcode)), flags = BPF_CORE_READ(req, flags);

	is_reader(c);
	if (kind != REQUEST_ELSE)
		use(c, req, flags, kind);
	else if (c->reader)
		will_close(c, req, flags);
}

/* Whoever completes a request to open or close has the descriptors of the process. */
static __always_inline void has_closed(struct caller *c, struct io_kiocb *req)
{
	const u64 key = (u64)req, *file = bpf_map_lookup_elem(&closing, &key);

	if (!file)
		return;
	if (is_reader(c))
		close_handle(c, *file, ~0u);
	bpf_map_delete_elem(&closing, &key);
}

static __always_inline void uring_completed(struct caller *c, struct io_kiocb *req, s32 result)
{
	if (BPF_CORE_READ(req, opcode) == IORING_OP_CLOSE)
		has_closed(c, req);
	else
		find_file(c, descriptor(result), 0);
}

#endif
