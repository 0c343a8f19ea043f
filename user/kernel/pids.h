/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pids.h - whose numbers pids are.
 *
 * Users, /proc and the BPF side (bpf/pids.bpf.h) speak of pids as the pid namespace has them that
 * /proc was mounted in. System calls take those of our own namespace, which may be one further in:
 * `unshare --pid --fork` without --mount-proc. In between is what is here.
 */
#ifndef QPROF_PIDS_H
#define QPROF_PIDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* Where we are. */
struct pids_view {
	bool nested;	    /* our pid namespace is not the initial one */
	unsigned int above; /* that of /proc is so many levels above ours */
	pid_t self;	    /* what /proc calls us */
};

/* 0, or -1 and *err: /proc cannot be used, as it does not know us. */
int pids_look(struct pids_view *view, struct error *err);

/* What /proc calls us; 0: it does not know us. */
pid_t pids_self(void);

/* What system calls call the process that /proc calls so; 0: it is gone, or outside of our pid
 * namespace, or in one beside it, perhaps. */
pid_t pids_number(pid_t pid);

/* A pidfd of the process that /proc calls so. Or -ESRCH: there is none; -EXDEV: it is outside of
 * our pid namespace, where no call of ours reaches it; or -errno. */
int pids_open(pid_t pid);

/* What /proc calls the process of a pidfd; 0: it does not know it. */
pid_t pids_of(int pidfd);

#endif
