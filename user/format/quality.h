/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * quality.h - everything that was counted as lost or doubtful. quality.c states each count once:
 * its key, what it means, where it lies, and whether runs or audits have it. Every format takes it
 * from here.
 */
#ifndef QPROF_QUALITY_H
#define QPROF_QUALITY_H

#include "format/run_info.h"
#include "model/machine.h"

struct quality_count {
	const char *key;   /* of the profile: a promise to its readers */
	const char *means; /* for people, with the number: see units_counted() */
	uint64_t count;
};

/* How the note on CPU time begins where clock events cannot be had; reports look for it. */
#define QUALITY_CPU_BY_TICK "cpu_time is as of each thread's last scheduler tick or switch"

enum { QUALITY_MAX_COUNTS = 72 };

/* Each returns how many of counts were filled in. */
size_t quality_of_run(const struct run_quality *quality, const struct profile_losses *losses,
		      struct quality_count counts[QUALITY_MAX_COUNTS]);
size_t quality_of_audit(const struct run_quality *quality, const struct machine *m,
			struct quality_count counts[QUALITY_MAX_COUNTS]);

/* Returns what the key of a run's count means, for units_counted(); NULL if no count has that key.
 */
const char *quality_means(const char *key);

/* Whether it is to be told to people: thinning is no loss, for peaks stay. */
bool quality_is_worth_saying(const char *key, uint64_t count);

/* The run time of our BPF programs as a part of the tree's CPU time, 0.01 for 1 %; NAN for a tree
 * without CPU time. */
double quality_bpf_share(const struct profile *p, const struct run_quality *quality);

#endif
