/* SPDX-License-Identifier: GPL-2.0-only */
/* overcommit.h - what the machine has promised to all processes, where it refuses to promise more
 * (vm.overcommit_memory is 2). */
#ifndef QPROF_OVERCOMMIT_H
#define QPROF_OVERCOMMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct overcommit {
	uint64_t committed, limit; /* bytes */
};

/*
 * As it was while that process lived, which is about to end, or has ended: private_bytes is what it
 * had mapped private and writable then. Returns false if the machine promises as much as anybody
 * wants, or nobody knows: while the process gives its memory back it waits for that, 50 ms at most,
 * and not at all if it must not.
 */
bool overcommit_read(pid_t pid, uint64_t started_ns, uint64_t private_bytes, bool may_wait,
		     struct overcommit *found);

#endif
