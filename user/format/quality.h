/* SPDX-License-Identifier: GPL-2.0-only */
/* quality.h - everything that was counted as lost or doubtful, in one list for all formats. */
#ifndef QPROF_QUALITY_H
#define QPROF_QUALITY_H

#include "format/run_info.h"
#include "model/machine.h"

struct quality_count {
	const char *key;   /* of the profile: a promise to its readers */
	const char *means; /* for people, after the number */
	uint64_t count;
};

enum { QUALITY_MAX_COUNTS = 48 };

/* How many of counts were filled in. */
size_t quality_counts(const struct profile *p, const struct run_quality *quality,
		      struct quality_count counts[QUALITY_MAX_COUNTS]);

/* Of an audit. */
size_t machine_quality_counts(const struct machine *m, const struct run_quality *quality,
			      struct quality_count counts[QUALITY_MAX_COUNTS]);

/* The run time of our BPF programs as a part of the tree's CPU time, 0.01 for 1 %; NAN for a tree
 * without CPU time. */
double quality_bpf_share(const struct profile *p, const struct run_quality *quality);

/* Likewise for people, of a key in a file; NULL: none of these. */
const char *quality_means(const char *key);

#endif
