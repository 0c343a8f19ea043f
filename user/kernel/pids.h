/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pids.h - translates pids between /proc and system calls.
 *
 * Users, /proc and the BPF side (bpf/pids.bpf.h) use the numbers of the pid namespace in which
 * /proc was mounted. System calls use the numbers of our own namespace, which may be further in:
 * `unshare --pid --fork` without --mount-proc. Example: /proc calls us 4711, getpid() says 1.
 */
#ifndef QPROF_PIDS_H
#define QPROF_PIDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* Where we are. */
struct pids_view {
	bool nested;	    /* our pid namespace is not the initial one */
	unsigned int above; /* how many levels the namespace of /proc is above ours */
	pid_t self;	    /* our number in /proc */
};

/* Returns 0; or -1 and *err if /proc does not know us, and so is of no use. */
int pids_look(struct pids_view *view, struct error *err);

/* Returns our number in /proc; 0: /proc does not know us. */
pid_t pids_self(void);

/*
 * Returns the number for system calls of the process that /proc calls pid; 0: it is gone, or
 * outside of our pid namespace. A process in a namespace beside ours may give a number, too.
 */
pid_t pids_number(pid_t pid);

/* Returns the number that the process of that number in /proc has for itself; 0: it is gone. */
pid_t pids_innermost(pid_t pid);

/*
 * Returns a pidfd of the process that /proc calls pid; -ESRCH: there is none; -EXDEV: it is outside
 * of our pid namespace, where no call of ours reaches it; or -errno.
 */
int pids_open(pid_t pid);

/* Returns the number in /proc of the process of a pidfd; 0: /proc does not know it. */
pid_t pids_of(int pidfd);

#endif
