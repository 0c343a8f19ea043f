/* SPDX-License-Identifier: GPL-2.0-only */
/* rank_asked.h - which of several processes that run the same script a process is. */
#ifndef QPROF_RANK_ASKED_H
#define QPROF_RANK_ASKED_H

#include <stdint.h>

#include "model/profile.h"

/* For struct profile_config. Returns what the environment of the process says, which /proc shows
 * while it lives; nothing if it is gone. */
struct rank rank_asked(void *context, uint32_t tgid, uint64_t started_ns);

#endif
