// SPDX-License-Identifier: GPL-2.0-only
/* file_uring.bpf.c - requests of io_uring that may begin or end the use of a file. */
#include "file_uring.bpf.h"

static __always_inline bool is_watched(void)
{
	const u32 tgid = current_id() >> 32;

	return bpf_map_lookup_elem(&watching, &tgid);
}

/* Most requests are of processes that nobody watches. */
static __always_inline bool uses_files(struct io_kiocb *req)
{
	const u8 opcode = BPF_CORE_READ(req, opcode);

	return (kind_of(opcode) != REQUEST_ELSE || opcode == IORING_OP_CLOSE) && is_watched();
}

static __always_inline bool has_opened_or_closed(struct io_kiocb *req, s32 result)
{
	struct io_open *open = (void *)req;
	const u64 key = (u64)req;
	u8 opcode;

	if (!req || result < 0)
		return false;
	opcode = BPF_CORE_READ(req, opcode);
	if (opcode == IORING_OP_CLOSE)
		return bpf_map_lookup_elem(&closing, &key);
	return (opcode == IORING_OP_OPENAT || opcode == IORING_OP_OPENAT2) &&
	       !BPF_CORE_READ(open, file_slot) && is_watched();
}

/* The loader takes those two that it has taken of uring.bpf.c. */

SEC("?raw_tp/io_uring_submit_req")
int file_submitted(const volatile u64 *args)
{
	if (uses_files((struct io_kiocb *)args[0]))
		lead_to_file_changes((void *)args, FILE_SUBMITTED);
	return 0;
}

SEC("?raw_tp/io_uring_submit_sqe")
int file_submitted_old(const volatile u64 *args)
{
	if (uses_files((struct io_kiocb *)args[0]))
		lead_to_file_changes((void *)args, FILE_SUBMITTED);
	return 0;
}

SEC("?raw_tp/io_uring_complete")
int file_completed(const volatile u64 *args)
{
	struct io_uring_cqe *cqe = (void *)args[2];

	if (has_opened_or_closed((struct io_kiocb *)args[1], BPF_CORE_READ(cqe, res)))
		lead_to_file_changes((void *)args, FILE_COMPLETED);
	return 0;
}

SEC("?raw_tp/io_uring_complete")
int file_completed_old(const volatile u64 *args)
{
	if (has_opened_or_closed((struct io_kiocb *)args[1], args[3]))
		lead_to_file_changes((void *)args, FILE_COMPLETED_OLD);
	return 0;
}
