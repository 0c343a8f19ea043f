/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * machine_internal.h - what the files of the model of a machine share, by subject. Nobody else
 * includes it.
 */
#ifndef QPROF_MACHINE_INTERNAL_H
#define QPROF_MACHINE_INTERNAL_H

#include "model/machine.h"
#include "model/profile_internal.h"

/* Whose processes and jobs take up room; there while they do. */
struct user {
	uint32_t uid;
	struct process *ended; /* the oldest first */
	size_t n_ended;
	size_t kept; /* of MACHINE_KEPT */
	size_t jobs; /* kept */
	UT_hash_handle hh;
};

/* A row of memory_usage, as small as it can be. */
struct row {
	const char *step;		/* of a text */
	struct profile_metric *metrics; /* whose names are of texts */
	uint64_t time_ns, rss, step_peak, hugetlb;
	struct profile_usage usage;
	uint32_t seq, tgid, tid, n_metrics;
	uint8_t what;
};

struct text; /* see machine_rows.c */

struct job {
	struct machine_job pub; /* first: what callers hold */
	struct user *user;
	struct process *members;
	struct row *rows;
	size_t rows_cap, charged;
	bool began; /* callers have been told */
};

struct sum {
	struct machine_sum pub;
	UT_hash_handle hh;
};

struct machine {
	struct processes processes; /* first: see make_room() */
	struct machine_config config;
	struct profile_losses process_losses;
	struct machine_losses losses;
	size_t alive;

	struct job *running[WIRE_MAX_JOBS];
	struct machine_job **jobs;
	size_t n_jobs;
	uint64_t last_id;

	struct user *users, *next_user;
	size_t kept;
	struct text *texts;
	struct sum *sums[MACHINE_SUMS];
	struct sum *by_owner;
	size_t n_sums;
};

static inline struct process *process_of(const struct profile_process *pub)
{
	return (struct process *)pub;
}

static inline struct job *job_of(const struct process *process)
{
	return (struct job *)process->pub.job;
}

/* machine_members.c: users, their processes, and what is left of those. */

/* NULL when out of memory. */
struct user *user_get(struct machine *m, uint32_t uid);
/* Forgets the user, if nothing is kept of it. */
void user_release(struct machine *m, struct user *user);
/* One user gets no more than is left for all others. */
bool user_may_keep(const struct machine *m, const struct user *user, size_t n);

/* For processes.make_room: the one goes that ended first and that nobody needs. */
bool members_make_room(struct processes *ps);
/* Its first record: it is alive, has a parent, and perhaps that one's job. */
void member_meet(struct machine *m, struct process *process, struct machine_news *news);
/* Below its parent, if that is known. */
void member_link(struct machine *m, struct process *process);
/* Unless it is in one, or job is NULL. */
void member_join(struct process *process, struct job *job);
/* Takes note of its end. 0 or -ENOMEM. */
int member_end(struct machine *m, struct process *process);
/* Whether its end was taken note of. */
bool member_has_ended(const struct process *process);

/* machine_rows.c */

/* What cannot be kept is counted: that there was a row is not forgotten. */
void rows_keep(struct machine *m, struct job *job, const struct profile_checkpoint *step);
void rows_free(struct machine *m, struct job *job);

/* machine_jobs.c */

/* The job that a record is of, in *job, begun if need be; NULL: of none. 0 or -ENOMEM. */
int job_of_record(struct machine *m, const struct wire_header *h, struct job **job);
/* The first that is heard of a job with its root: the checkpoint with which it began. */
void job_tell_begin(struct machine *m, struct job *job, struct process *root,
		    struct machine_news *news);
/* It keeps n rows, metrics or phases more. */
void job_charge(struct machine *m, struct job *job, size_t n);
/* It takes no more checkpoints. 0 or -ENOMEM. */
int job_end(struct machine *m, struct job *job, uint64_t time_ns);
/* A process of it has ended. If it was the last, its index is another's from now on. 0 or -ENOMEM.
 */
int job_leave(struct machine *m, const struct process *process, uint64_t time_ns,
	      struct machine_news *news);
void job_free(struct machine *m, struct job *job);

#endif
