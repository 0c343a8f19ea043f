/* SPDX-License-Identifier: GPL-2.0-only */
/* caller.h - whether a process is its caller's own: what ptrace(2) would let the caller look into.
 */
#ifndef QPROF_CALLER_H
#define QPROF_CALLER_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

/* Returns a pidfd of the process that has connected, or -errno. Sets *caller to what it was then.
 */
int caller_of(int connection, struct ucred *caller);

/*
 * Sets *tgid to the number in our /proc of the process of that pidfd. Returns 0; or -1 and *err, a
 * sentence for the caller: the process is gone or is not seen from here, it is not the caller's
 * own, or it does not wait for its exec.
 */
int caller_owns(const struct ucred *caller, int pidfd, uint32_t *tgid, struct error *err);

#endif
