/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * machine_state.h - a machine, its jobs and the members of both, for the files that make up the
 * model of a machine. Nobody else includes it.
 *
 * Who calls whom: machine.c -> machine_jobs -> machine_members, machine_rows -> machine_sums,
 * machine_users. None calls back.
 */
#ifndef QPROF_MACHINE_STATE_H
#define QPROF_MACHINE_STATE_H

#include "base/hash.h"
#include "base/packed.h"
#include "model/machine.h"
#include "model/processes.h"

struct looked;
struct row;
struct sum;
struct text;
struct user;

/* That a process is in a job. */
struct membership {
	struct job *job;
	struct member *member;
	struct membership *prev, *next; /* in job.members */
	struct profile_usage before;	/* what the process had used when it joined */
};

/* A process of the machine, with what only audits need. There are 32,768, and all of it takes 32
 * MiB at most: what few of them need is allocated by itself. */
struct member {
	struct process process; /* first: the table of processes holds this */
	struct membership *in;	/* NULL: it is in no job */
	struct member *parent;	/* the nearest ancestor that is alive */
	struct member *children;
	struct member *prev,
		*next;		/* alive: its siblings; ended: in user.ended or machine.needed */
	uint64_t marked_rss[2]; /* at the last machine_mark(), and the one before */
	uint64_t left;		/* the id of the job that it left last; it does not come back */
	struct looked *looked;	/* NULL: no machine_look() since it was met */
	uint32_t pins;		/* it must not be removed while there are any */
	bool known;		/* it was met: see member_meet() */
	bool ended;		/* its end was taken note of: see member_end() */
};

struct job {
	struct machine_job pub; /* first: callers hold this */
	struct user *user;
	struct membership *members;
	struct row *rows;
	struct packed packed_rows; /* instead of these, while they are put away */
	size_t rows_cap, charged;
	uint64_t gpu_ns; /* when pub.gpu was told */
	bool began;	 /* callers have been told */
};

struct machine {
	struct processes processes; /* first: see members_make_room() */
	struct machine_config config;
	struct profile_losses process_losses;
	struct machine_losses losses;
	size_t alive;
	uint64_t looked_ns[2]; /* as in struct member; 0: there was no such look */

	struct job *running[WIRE_MAX_JOBS];
	uint64_t freed_ns[WIRE_MAX_JOBS]; /* see machine_free_index() */
	struct machine_job **jobs;
	size_t n_jobs;
	struct job *ended_last; /* callers may look at its phases yet; NULL: it is gone */
	uint64_t last_id;

	struct user *users, *next_user;
	struct membership *spare; /* for the next process that joins a job */
	struct member *needed;	  /* processes that have ended, and cannot go yet */
	size_t kept;
	struct text *texts;
	struct sum *sums[MACHINE_SUMS];
	struct sum *by_owner;
	size_t n_sums;
};

static inline struct member *member_of(const struct profile_process *pub)
{
	return (struct member *)pub;
}

static inline struct member *member_at(const struct machine *m, size_t i)
{
	return member_of(m->processes.list[i]);
}

static inline struct job *job_of_member(const struct member *member)
{
	return member->in ? member->in->job : NULL;
}

static inline struct profile_process *process_of(struct member *member)
{
	return &member->process.pub;
}

#endif
