/* SPDX-License-Identifier: GPL-2.0-only */
/* machine_sums.h - what is left of processes that are not kept: a sum for each user and cgroup. */
#ifndef QPROF_MACHINE_SUMS_H
#define QPROF_MACHINE_SUMS_H

#include "model/machine_state.h"

struct sum {
	struct machine_sum pub; /* begins with the key, uid and cgroup */
	UT_hash_handle hh;
};

/* Adds what the process has used; it is about to be removed. Returns false when out of memory: it
 * was not added. */
bool sums_add(struct machine *m, const struct profile_process *pub);
void sums_free(struct machine *m);

#endif
