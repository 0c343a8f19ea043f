/* SPDX-License-Identifier: GPL-2.0-only */
/* uring.bpf.h - what requests of io_uring do. */
#ifndef QPROF_URING_BPF_H
#define QPROF_URING_BPF_H

#include "state.bpf.h"

/* include/uapi/linux/io_uring.h */
enum {
	IORING_OP_READV = 1,
	IORING_OP_WRITEV = 2,
	IORING_OP_READ_FIXED = 4,
	IORING_OP_WRITE_FIXED = 5,
	IORING_OP_OPENAT = 18,
	IORING_OP_CLOSE = 19,
	IORING_OP_READ = 22,
	IORING_OP_WRITE = 23,
	IORING_OP_OPENAT2 = 28,
	IORING_OP_SPLICE = 30,
	IORING_OP_TEE = 33,
	IORING_OP_READ_MULTISHOT = 49,
	IORING_OP_READV_FIXED = 60,
	IORING_OP_WRITEV_FIXED = 61,
};

enum {
	IORING_CQE_F_BUFFER = 1 << 0,
	IORING_CQE_F_MORE = 1 << 1,
	/* The flags of a request begin with those of its submission. */
	IOSQE_FIXED_FILE = 1 << 0,
	IOSQE_BUFFER_SELECT = 1 << 5,
	IOSQE_CQE_SKIP_SUCCESS = 1 << 6,
};

/* What a request does, as bits. */
enum { REQUEST_READS = 1, REQUEST_WRITES = 2, REQUEST_ELSE = 4 };

static __always_inline u32 kind_of(u8 opcode)
{
	switch (opcode) {
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_READ_FIXED:
	case IORING_OP_READV_FIXED:
	case IORING_OP_READ_MULTISHOT:
		return REQUEST_READS;
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITEV_FIXED:
		return REQUEST_WRITES;
	case IORING_OP_SPLICE:
	case IORING_OP_TEE:
		return REQUEST_READS | REQUEST_WRITES;
	}
	return REQUEST_ELSE;
}

#endif
