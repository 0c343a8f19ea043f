/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * holders.h - programs that keep their memory map locked. To attach a probe to a file, or to remove
 * one, the kernel waits for the lock of each memory map that has the file, and nobody on the
 * machine can fork meanwhile. A program can hold its lock for as long as it likes. So this looks
 * before.
 *
 * A lock that is held for a moment is nothing unusual. A holder counts if its lock was never seen
 * free in 100 ms of many looks; or, of a thread that waits for nothing but a CPU, in 500 ms.
 * - Who has the lock for writing is known, and lets go once it is another thread or has slept
 * since.
 * - Who has it for reading is not: one that stays hides behind others that come and go. So only a
 *   look without any reader counts. A program of the run itself that waits for us is no stranger,
 *   and takes that lock all the time (mapped.bpf.c): for it the rule of writers is enough.
 */
#ifndef QPROF_HOLDERS_H
#define QPROF_HOLDERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "bpf/wire.h"
#include "kernel/patience.h"

enum { HOLDERS_KNOWN = 64 };

struct holders {
	int program;		  /* find_holder of holders.bpf.c; -1: nobody looks */
	struct patience patience; /* its budget is of users, who rests are processes */
	bool strangers;		  /* also a wait that ends in time is charged: in an audit */
	struct wire_holder known[HOLDERS_KNOWN]; /* for whom 100 ms were lost */
	unsigned int next;			 /* to be replaced: the oldest */
	pid_t found;				 /* by holders_let(): 0: it is not known who */
};

/* Returns true if nobody who has the file mapped is in the way of its probes. */
bool holders_let(struct holders *h, int fd);

#endif
