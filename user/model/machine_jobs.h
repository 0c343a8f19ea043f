/* SPDX-License-Identifier: GPL-2.0-only */
/* machine_jobs.h - jobs, from their first checkpoint until nobody is left in them, and after that
 * as long as there is room. */
#ifndef QPROF_MACHINE_JOBS_H
#define QPROF_MACHINE_JOBS_H

#include "model/machine_state.h"

/* Sets *job to the job that a record is of, begun if need be; NULL: of none, or it is over. Returns
 * 0 or -ENOMEM.
 */
int job_of_record(struct machine *m, const struct wire_header *h, struct job **job);
/* Tells of the job at its first checkpoint, which its root hit. */
void job_tell_begin(struct machine *m, struct job *job, struct member *root,
		    struct machine_news *news);
/* The job takes no more checkpoints. Returns 0 or -ENOMEM. */
int job_end(struct machine *m, struct job *job, uint64_t time_ns);
/* A process of the job has ended. If it was the last, another job may have the index from now on.
 * Returns 0 or -ENOMEM. */
int job_leave(struct machine *m, const struct member *member, uint64_t time_ns,
	      struct machine_news *news);
void job_free(struct machine *m, struct job *job);

#endif
