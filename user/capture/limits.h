/* SPDX-License-Identifier: GPL-2.0-only */
/* limits.h - looks at limits of memory, for the model of how close a tree is to them. */
#ifndef QPROF_CAPTURE_LIMITS_H
#define QPROF_CAPTURE_LIMITS_H

#include "kernel/memory_limit.h"
#include "model/headroom.h"
#include "model/profile.h"

/* The last record is the newest there is. tgid: whose address space is looked at; 0: nobody's.
 * is_apart: some of the tree is in other cgroups, so what it holds tells nothing of these. */
void limits_look(struct headroom *h, struct memory_limits *limits, uint32_t tgid, bool is_apart);

/* For struct profile_config and machine_config. context: struct capture. */
bool limits_disk(void *context, const struct wire_written *written, bool as_root,
		 struct profile_disk *disk);
bool limits_committed(void *context, const struct wire_header *ended, uint64_t private_bytes,
		      struct profile_quota *all);

#endif
