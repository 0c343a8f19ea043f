/* SPDX-License-Identifier: GPL-2.0-only */
/* machine_rows.h - rows of memory_usage that jobs keep, each as small as it can be. */
#ifndef QPROF_MACHINE_ROWS_H
#define QPROF_MACHINE_ROWS_H

#include "model/machine_state.h"

struct row {
	const char *step;		/* the string of a struct text */
	struct profile_metric *metrics; /* their names are strings of struct text, too */
	uint64_t time_ns, rss, step_peak, hugetlb, charge;
	uint64_t gpu, gpu_step_peak, pinned;
	struct profile_usage usage;
	uint32_t seq, tgid, tid, n_metrics;
	uint8_t what;
	bool has_gpu;
};

/* Keeps the row of a checkpoint, or counts it where there is no room. */
void rows_keep(struct machine *m, struct job *job, const struct profile_checkpoint *step);
/* Keeps the rows of a job that has ended in few bytes, unless there is no memory for that. */
void rows_put_away(struct job *job);
/* The rows are there to be read, or others come. Returns 0 or -ENOMEM. */
int rows_take_out(struct job *job);
void rows_free(struct machine *m, struct job *job);

#endif
