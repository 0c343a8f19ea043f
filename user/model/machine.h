/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * machine.h - the model of an audit: all processes of a machine, and the jobs among them. Records
 * from the kernel go in; processes, jobs with a profile each, and sums come out.
 *
 * Pure, as profile.h is, and bounded however long it runs and whatever processes do:
 * - Ended processes are kept until there is no room: then the one goes that ended first, of the
 *   user who has most of them. What it had used stays in the sum of its user and cgroup.
 * - A job keeps rows of memory_usage and phases up to a limit of its own, and all jobs together up
 *   to another, of which one user gets no more than is left for the others.
 * - Of jobs that are over, the oldest goes when there are too many.
 * Whatever was left out is counted.
 */
#ifndef QPROF_MACHINE_H
#define QPROF_MACHINE_H

#include "model/profile.h"

enum {
	MACHINE_PROCESSES = 65536,  /* kept, by default, the ended ones included */
	MACHINE_JOB_ROWS = 1000,    /* rows of memory_usage that a job keeps */
	MACHINE_JOB_PHASES = 1000,  /* likewise phases */
	MACHINE_JOBS = 2048,	    /* kept, those that are over included */
	MACHINE_KEPT = 65536,	    /* rows, metrics and phases of all jobs */
	MACHINE_SUMS = 4096,	    /* sums of what is not kept any more, by user and cgroup */
	MACHINE_EVIDENCE_MAX = 256, /* bytes of the evidence that a rule matched */
	MACHINE_RULE_MAX = 64,	    /* of its name */
};

struct machine_config {
	uint64_t page_size;
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	size_t max_processes;	    /* 0: MACHINE_PROCESSES */
	const char *(*site_name)(void *context, uint32_t site); /* as in struct profile_config */
	void *context;
};

/* A tree that emitted checkpoints, or that a rule took for a job. */
struct machine_job {
	uint64_t id;	/* counts from 1, never used again */
	uint32_t index; /* the kernel side's, while it runs; see header.job */
	struct profile *profile;
	const struct profile_process *root; /* stays as long as the job does */
	uint64_t begin_ns, end_ns;	    /* CLOCK_MONOTONIC; end_ns is 0 while it runs */
	uint32_t alive, processes;	    /* of its processes: now, and all there were */
	uint64_t checkpoints;		    /* rows that there were, kept or not */
	size_t n_rows;			    /* kept: see machine_row */
	uint64_t dropped_rows;
	struct profile_usage usage; /* of the tree since the job began, as last heard of */
	/* Why it was taken for a job; empty: it has checkpoints. May be no UTF-8. */
	char rule[MACHINE_RULE_MAX], evidence[MACHINE_EVIDENCE_MAX];
};

/* What is left of processes that are not kept any more. */
struct machine_sum {
	uint32_t uid;
	uint64_t cgroup;
	uint64_t processes;
	uint64_t peak_rss; /* the highest of one of them */
	struct profile_usage usage;
};

/* What was left out, beside struct wire_quality. */
struct machine_losses {
	uint64_t forgotten_processes;	/* ended, and not kept: in the sums only */
	uint64_t forgotten_jobs;	/* over, and not kept */
	uint64_t dropped_rows;		/* of memory_usage */
	struct profile_losses profiles; /* the sum over the jobs' profiles; dropped_processes: of
					 * the whole machine */
};

/* What a record has changed. */
struct machine_news {
	const struct profile_process *process; /* whom it is about; NULL: there was no room */
	struct machine_job *job;	       /* its job, or NULL */
	const struct profile_checkpoint *step; /* a row of the job, kept or not, or NULL */
	bool job_began, job_ended;
	/* The kernel side is to be told that the process is of its parent's job: it had forked
	 * before that one joined. */
	bool joins;
	/* No process of the job is left: its index (job->index) can be given back. */
	bool job_is_over;
};

struct machine;

/* NULL when out of memory. */
struct machine *machine_new(const struct machine_config *config);
void machine_free(struct machine *m);

/* Takes one record, as profile_feed does. 0, or -ENOMEM: it had no effect. */
int machine_feed(struct machine *m, const struct wire_header *record, struct machine_news *news);
/* As it is now: a record of engine_tell_processes. Creates no process. */
void machine_tell(struct machine *m, const struct wire_process *event);
/* Those that were there before have been fed, in any order: finds their parents. */
void machine_settle(struct machine *m);

/*
 * When a job has begun: calls tell(context, tgid, member) for each descendant that was there before
 * and is of the job from now on; member is a tgid of the job.
 */
void machine_join_descendants(struct machine *m, struct machine_job *job,
			      void (*tell)(void *context, uint32_t tgid, uint32_t member),
			      void *context);

/* As profile_mark_gone(), of all processes: those whose exit was lost are not counted as alive. 0
 * or -ENOMEM. */
int machine_mark_gone(struct machine *m, profile_is_there_fn is_there, void *context);

/* The audit is over: closes the jobs that still run. 0 or -ENOMEM. */
int machine_finish(struct machine *m, uint64_t now_ns);

/* In no order. The array is valid until the next record. */
const struct profile_process *const *machine_processes(const struct machine *m, size_t *n);
/* The one that is alive, or ended last, of that tgid; or NULL. */
const struct profile_process *machine_process(const struct machine *m, uint32_t tgid);
/* Its index in machine_processes. */
size_t machine_index(const struct profile_process *process);
/* The first of its children that are alive, and the next of its parent's; or NULL. */
const struct profile_process *machine_child(const struct profile_process *process);
const struct profile_process *machine_sibling(const struct profile_process *process);
/* How many are alive. */
size_t machine_alive(const struct machine *m);
/* Notes what each process has now, in its marked_rss, to tell later how much it has grown since. */
void machine_mark(struct machine *m);
/* In the order in which they began; valid until the next record. */
struct machine_job *const *machine_jobs(const struct machine *m, size_t *n);
/* Row i of those that a job kept, in order. What it points at is the machine's. */
void machine_row(const struct machine *m, const struct machine_job *job, size_t i,
		 struct profile_checkpoint *row);
size_t machine_n_sums(const struct machine *m);
const struct machine_sum *machine_sum(const struct machine *m, size_t i);
struct machine_losses machine_losses(const struct machine *m);

/* CLOCK_MONOTONIC to Unix seconds. */
double machine_unix_secs(const struct machine *m, uint64_t time_ns);

#endif
