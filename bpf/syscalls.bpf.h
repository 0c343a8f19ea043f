/* SPDX-License-Identifier: GPL-2.0-only */
/* syscalls.bpf.h - the system call that a task is in, and the numbers that we ask for. */
#ifndef QPROF_SYSCALLS_BPF_H
#define QPROF_SYSCALLS_BPF_H

#include "state.bpf.h"

#if defined(__TARGET_ARCH_x86)
enum { FUTEX = 202, MMAP = 9, MUNMAP = 11, BRK = 12, MREMAP = 25, MADVISE = 28, SHMDT = 67 };
#else
enum { FUTEX = 98, MMAP = 222, MUNMAP = 215, BRK = 214, MREMAP = 216, MADVISE = 233, SHMDT = 197 };
#endif
enum { PROCESS_MADVISE = 440, FUTEX_WAITV = 449, FUTEX_WAIT = 455 };

/* Returns its number, or anything else if the task is in none. */
static __always_inline int syscall_of(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	u64 number = 0;

#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_kernel(&number, sizeof(number), &regs->orig_ax);
#else
	bpf_probe_read_kernel(&number, sizeof(regs->syscallno), &regs->syscallno);
#endif
	return (int)number;
}

#endif
