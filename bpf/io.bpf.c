// SPDX-License-Identifier: GPL-2.0-only
/*
 * io.bpf.c - the bytes that the kernel's own account (usage.bpf.h) leaves out: rchar and wchar know
 * nothing of splice(), tee(), vmsplice() and io_uring.
 *
 * Nothing here runs for a process that does not use them: io_uring has a tracepoint of its own;
 * the calls are seen at the end of the kernel's function where that can be traced (fexit) and at
 * the return of libc's where not. A hook on every system call would find them too, and slow every
 * process on the machine.
 */
#include "pids.bpf.h"

static __always_inline void account(u32 tgid, s64 read, s64 written)
{
	struct proc *proc = find_proc(tgid);

	if (!proc || proc->waiting)
		return;
	if (read > 0)
		atomic_add(&proc->gone.extra_read, read);
	if (written > 0)
		atomic_add(&proc->gone.extra_write, written);
}

static __always_inline u32 current_tgid(void)
{
	return current_id() >> 32;
}

/* include/uapi/linux/io_uring.h */
enum {
	IORING_OP_READV = 1,
	IORING_OP_WRITEV = 2,
	IORING_OP_READ_FIXED = 4,
	IORING_OP_WRITE_FIXED = 5,
	IORING_OP_READ = 22,
	IORING_OP_WRITE = 23,
	IORING_OP_SPLICE = 30,
	IORING_OP_TEE = 33,
	IORING_OP_READ_MULTISHOT = 49,
	IORING_OP_READV_FIXED = 60,
	IORING_OP_WRITEV_FIXED = 61,
};

/* A completion may be posted by whoever: the bytes are the submitter's. */
static __always_inline u32 submitter(struct io_kiocb *req)
{
	if (bpf_core_field_exists(req->task))
		return tgid_of(BPF_CORE_READ(req, task));
	return tgid_of(BPF_CORE_READ((struct io_kiocb___since_6_13 *)req, tctx, task));
}

static __always_inline int completed(struct io_kiocb *req, s32 bytes)
{
	if (!req || bytes <= 0)
		return 0;
	switch (BPF_CORE_READ(req, opcode)) {
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_READ_FIXED:
	case IORING_OP_READV_FIXED:
	case IORING_OP_READ_MULTISHOT:
		account(submitter(req), bytes, 0);
		break;
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITEV_FIXED:
		account(submitter(req), 0, bytes);
		break;
	case IORING_OP_SPLICE:
	case IORING_OP_TEE:
		account(submitter(req), bytes, bytes);
		break;
	}
	return 0;
}

/* The loader takes the one whose arguments the kernel has. */
SEC("?tp_btf/io_uring_complete")
int BPF_PROG(io_uring_done, void *ring, void *req, struct io_uring_cqe *cqe)
{
	return completed(req, BPF_CORE_READ(cqe, res));
}

/* Until 6.13: the parts of the completion one by one. */
SEC("?tp_btf/io_uring_complete")
int BPF_PROG(io_uring_done_old, void *ring, void *req, u64 user_data, int res)
{
	return completed(req, res);
}

#if defined(__TARGET_ARCH_x86)
#define SYSCALL_FUNCTION(name) "?fexit/__x64_sys_" name
#else
#define SYSCALL_FUNCTION(name) "?fexit/__arm64_sys_" name
#endif

SEC(SYSCALL_FUNCTION("splice"))
int BPF_PROG(splice_done, const struct pt_regs *regs, long bytes)
{
	account(current_tgid(), bytes, bytes);
	return 0;
}

SEC(SYSCALL_FUNCTION("tee"))
int BPF_PROG(tee_done, const struct pt_regs *regs, long bytes)
{
	account(current_tgid(), bytes, bytes);
	return 0;
}

/* Counted as written: a pipe is nearly always what it goes to. */
SEC(SYSCALL_FUNCTION("vmsplice"))
int BPF_PROG(vmsplice_done, const struct pt_regs *regs, long bytes)
{
	account(current_tgid(), 0, bytes);
	return 0;
}

/* At the return of libc's splice() or tee(). */
SEC("?uretprobe")
int libc_splice_done(struct pt_regs *ctx)
{
	account(current_tgid(), PT_REGS_RC(ctx), PT_REGS_RC(ctx));
	return 0;
}

SEC("?uretprobe")
int libc_vmsplice_done(struct pt_regs *ctx)
{
	account(current_tgid(), 0, PT_REGS_RC(ctx));
	return 0;
}
