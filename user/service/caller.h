/* SPDX-License-Identifier: GPL-2.0-only */
/* caller.h - whether a process is its caller's own: what ptrace(2) would let the caller look into.
 */
#ifndef QPROF_CALLER_H
#define QPROF_CALLER_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

/*
 * Sets *tgid to the number in our /proc of the process of a descriptor that somebody sent, who is
 * `caller`. Returns 0; or -1 and *err, a sentence for the caller: it is no pidfd, the process is
 * gone or is not seen from here, or it is not the caller's own.
 */
int caller_owns(const struct ucred *caller, int pidfd, uint32_t *tgid, struct error *err);

#endif
