/* SPDX-License-Identifier: GPL-2.0-only */
/* ending.bpf.h - which signals end a process, and what is told before they do. */
#ifndef QPROF_ENDING_BPF_H
#define QPROF_ENDING_BPF_H

#include "state.bpf.h"

enum {
	SIGILL = 4,
	SIGTRAP = 5,
	SIGABRT = 6,
	SIGBUS = 7,
	SIGFPE = 8,
	SIGKILL = 9,
	SIGSEGV = 11,
	SIGCHLD = 17,
	SIGCONT = 18,
	SIGSTOP = 19,
	SIGTSTP = 20,
	SIGTTIN = 21,
	SIGTTOU = 22,
	SIGURG = 23,
	SIGWINCH = 28,
	NR_SIGNALS = 64,
};

/* Of struct kernel_siginfo *: no address, but who sent a signal. */
enum {
	BY_USER = 0,   /* SEND_SIG_NOINFO: the running process */
	BY_KERNEL = 1, /* SEND_SIG_PRIV */
};

#define SIGNAL_BIT(signal) (1ULL << ((signal)-1))

/* Signals that stop or continue a process, or are ignored, unless it handles them. */
#define HARMLESS                                                                                   \
	(SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) |   \
	 SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU) | SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH))

static __always_inline bool ends_by_default(u32 signal)
{
	return signal - 1 < NR_SIGNALS && !(HARMLESS & SIGNAL_BIT(signal));
}

/* Tells of a signal to a tracked process, if it ends it. The addresses: of a task_struct, and what
 * signal_generate has of a kernel_siginfo. */
int tell_signal(u64 task, u64 info, u32 signal);

/* Tells of a process that exits by itself, and fails. Until 6.15 its memory is gone by then, and
 * nothing is told. */
int tell_failure(struct proc *proc, u32 tid);

#endif
