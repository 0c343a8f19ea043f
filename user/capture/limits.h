/* SPDX-License-Identifier: GPL-2.0-only */
/* limits.h - looks at limits of memory, for the model of how close a tree is to them. */
#ifndef QPROF_CAPTURE_LIMITS_H
#define QPROF_CAPTURE_LIMITS_H

#include "kernel/memory_limit.h"
#include "model/headroom.h"

/* The last record is the newest there is. tgid: whose address space is looked at; 0: nobody's. */
void limits_look(struct headroom *h, struct memory_limits *limits, uint32_t tgid);

#endif
