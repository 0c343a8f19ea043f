/* SPDX-License-Identifier: GPL-2.0-only */
/* headroom.h - how close a run came to a limit of memory, in a sentence. */
#ifndef QPROF_FORMAT_HEADROOM_H
#define QPROF_FORMAT_HEADROOM_H

#include "format/recording.h"
#include "model/growth.h"
#include "model/headroom.h"

enum { HEADROOM_TEXT_MAX = 1024 };

/* "2.10 GiB left of 64.0 GiB (cgroup /job), in Layer 31"; phase may be NULL. Returns out. */
char *headroom_words(char out[HEADROOM_TEXT_MAX], uint64_t left, uint64_t limit, const char *of,
		     const char *phase);
/* "Layer # grows 10.0 MiB each: 300 MiB (cgroup /job) at about #41, in 30 s". Returns out. */
char *headroom_end_words(char out[HEADROOM_TEXT_MAX], const struct growth_end *end, uint64_t limit,
			 const char *of);
/* "to its limit in Layer 31: 2.10 GiB left of 64.0 GiB (cgroup /job)", after "closest". Returns
 * false if more than half was left, or nobody knows. */
bool headroom_sentence(char out[HEADROOM_TEXT_MAX], const struct recording *r);

#endif
