/* SPDX-License-Identifier: GPL-2.0-only */
/* aio.bpf.h - requests of native AIO, as a program lists them. */
#ifndef QPROF_AIO_BPF_H
#define QPROF_AIO_BPF_H

#include "state.bpf.h"

/* include/uapi/linux/aio_abi.h */
struct iocb_head {
	u64 data;
	u32 key, flags;
	u16 opcode;
	s16 priority;
	u32 fd;
	u64 buffer, bytes;
};

enum {
	IOCB_CMD_PREAD = 0,
	IOCB_CMD_PWRITE = 1,
	IOCB_CMD_PREADV = 7,
	IOCB_CMD_PWRITEV = 8,
};

/* Requests and buffers of a call that are looked at: its list may be hostile. */
enum { MAX_LOOKS = 65536 };

/* Reads the i-th of a program's struct iocb *[]. Returns false if it cannot be read. */
static __always_inline bool read_request(u64 requests, u32 i, struct iocb_head *head)
{
	u64 at;

	return !bpf_probe_read_user(&at, sizeof(at), (void *)(requests + i * sizeof(at))) &&
	       !bpf_probe_read_user(head, sizeof(*head), (void *)at);
}

#endif
