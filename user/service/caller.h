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

/*
 * The same of a process that has connected, and asks for others. Sets *tgid to its number in our
 * /proc, and *capabilities to those that these may have: of users none, of root what it has itself
 * (in a container that is not all).
 */
int caller_asks(const struct ucred *caller, int pidfd, uint32_t *tgid, uint64_t *capabilities,
		struct error *err);

/*
 * Opens a process that the caller asks for: pid, in the pid namespace of the process of asks, which
 * has connected. Returns a pidfd, and sets *tgid to its number in our /proc; or returns -1, and
 * *err: it is gone, or is not the caller's own.
 */
int caller_opens(const struct ucred *caller, uint64_t capabilities, int asks, uint32_t pid,
		 uint32_t *tgid, struct error *err);
/* Looks again whose it is. Returns 0; or -1, and *err. */
int caller_looks_again(const struct ucred *caller, uint64_t capabilities, int pidfd, uint32_t tgid,
		       struct error *err);

#endif
