/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * machine.h - the model of an audit: all processes of a machine, and the jobs among them. Records
 * from the kernel go in; processes, jobs with a profile each, and sums come out.
 *
 * Pure, as profile.h is, and bounded however long it runs and whatever processes do:
 * - Ended processes are kept while there is room. Then the process that ended first goes, of the
 *   user who has most of them. What it had used stays in the sum of its user and cgroup.
 * - A job keeps a limited number of rows of memory_usage and of phases. All jobs together keep
 *   MACHINE_KEPT; a user may keep no more than it leaves for all others.
 * - When there are too many jobs, the oldest job that is over goes.
 * Whatever is left out is counted.
 */
#ifndef QPROF_MACHINE_H
#define QPROF_MACHINE_H

#include "model/job_files.h"
#include "model/job_stacks.h"
#include "model/profile.h"

enum {
	MACHINE_PROCESSES = 32768,  /* kept by default, ended processes included */
	MACHINE_JOB_ROWS = 1000,    /* rows of memory_usage that a job keeps */
	MACHINE_JOB_PHASES = 1000,  /* phases that a job keeps */
	MACHINE_JOBS = 2048,	    /* kept, jobs that are over included */
	MACHINE_KEPT = 65536,	    /* rows, metrics and phases that all jobs keep */
	MACHINE_SUMS = 4096,	    /* sums of processes that are not kept, by user and cgroup */
	MACHINE_EVIDENCE_MAX = 256, /* bytes of the evidence for which a rule matched */
	MACHINE_RULE_MAX = 64,	    /* bytes of a rule's name */
};

struct machine_config {
	uint64_t page_size;
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	size_t max_processes;	    /* 0: MACHINE_PROCESSES */
	/* As in struct profile_config. */
	const char *(*site_name)(void *context, uint32_t site);
	bool (*disk)(void *context, const struct wire_written *written, bool as_root,
		     struct profile_disk *disk);
	bool (*committed)(void *context, const struct wire_header *ended, uint64_t private_bytes,
			  struct profile_quota *all);
	void *context;
};

/* What is known of the files that a job used storage for. */
enum machine_files {
	MACHINE_FILES_NOT_COUNTED, /* nobody asked for them, or nobody could yet */
	MACHINE_FILES_COUNTED,	   /* nothing is known until it ends */
	MACHINE_FILES_KNOWN,
	MACHINE_FILES_LACKING, /* they could not be counted, or not to its end */
};

/* A tree that emitted checkpoints, or that a rule took for a job. */
struct machine_job {
	uint64_t id;	/* counts from 1, and is never used again */
	uint32_t index; /* the kernel side's while the job runs; see wire_header.job */
	struct profile *profile;
	const struct profile_process *root; /* stays as long as the job does */
	uint64_t begin_ns, end_ns;	    /* CLOCK_MONOTONIC; end_ns is 0 while it runs */
	uint32_t alive, processes;	    /* how many processes it has, and has had */
	bool is_of_running;   /* its processes ran already, and are served: they leave it at its end
			       */
	uint32_t outliving;   /* how many were alive when it ended, without its root */
	uint64_t checkpoints; /* rows that there were, kept or not */
	size_t n_rows;	      /* rows that are kept: see machine_row() */
	uint64_t dropped_rows;
	struct profile_usage usage; /* of the tree since the job began, as last heard of */
	uint64_t gpu, gpu_peak;	    /* bytes on GPUs: the same, and the most so far */
	/* The rule that took it for a job, and why; empty if its checkpoints did. May be no UTF-8.
	 */
	char rule[MACHINE_RULE_MAX], evidence[MACHINE_EVIDENCE_MAX];
	enum machine_files files_are;
	struct job_files *files;   /* NULL unless they are known */
	bool stacks_awaited;	   /* it is sampled, and nothing is known until it ends */
	struct job_stacks *stacks; /* NULL unless they are known */
};

/* Returns false once its root has ended or left it, not if the audit ended before. */
bool machine_job_runs(const struct machine_job *job);
/* Returns what the process has used as one of its job, as last heard of. */
struct profile_usage machine_usage_in_job(const struct profile_process *process);

/* What is used in a time, for rates. */
struct machine_used {
	uint64_t cpu_ns;
	uint64_t calls, storage; /* bytes read and written, through calls; from and to storage */
};

/* What is left of processes that are not kept any more. */
struct machine_sum {
	uint32_t uid;
	uint64_t cgroup;
	uint64_t processes;
	uint64_t peak_rss; /* the highest that one process had */
	struct profile_usage usage;
};

/* Of samples of stacks of jobs. */
struct machine_stack_losses {
	uint64_t lost;	  /* no room in the ring, or too late */
	uint64_t cut;	  /* not known to their end */
	uint64_t dropped; /* of functions beyond those that are told apart */
};

/* What was left out, beside struct wire_quality. */
struct machine_losses {
	uint64_t forgotten_processes; /* ended, and not kept: in the sums only */
	uint64_t forgotten_jobs;      /* over, and not kept */
	uint64_t dropped_rows;	      /* of memory_usage */
	uint64_t fileless_jobs;	      /* whose files could not be counted */
	uint64_t dropped_file_names;  /* of files of jobs */
	uint64_t unsure_removals;     /* files of jobs that may have no name any more */
	uint64_t stackless_jobs;      /* that should have been sampled, and could not be */
	struct machine_stack_losses stacks;
	struct profile_losses profiles; /* the sum over the jobs' profiles; dropped_processes: of
					 * the whole machine */
};

/* What a record has changed. */
struct machine_news {
	const struct profile_process *process; /* its subject; NULL if there was no room for it */
	struct machine_job *job;	       /* its job, or NULL */
	const struct profile_checkpoint *step; /* a row of the job, kept or not, or NULL */
	bool job_began, job_ended;
	/* Tell the kernel side that the process is of its parent's job: it was forked before the
	 * parent joined. */
	bool joins;
	/* No process of the job is left: give its index (job->index) back. */
	bool job_is_over;
};

struct machine;

/* Returns NULL when out of memory. */
struct machine *machine_new(const struct machine_config *config);
void machine_free(struct machine *m);

/* Takes a record, as profile_feed() does. Returns 0, or -ENOMEM and the record had no effect. */
int machine_feed(struct machine *m, const struct wire_header *record, struct machine_news *news);
/* Takes what a process is now, a record of engine_tell_processes(). Creates no process. */
void machine_tell(struct machine *m, const struct wire_process *event);
/* The job that had this index is over, and another's records begin after now: what is from before
 * then is of no job. */
void machine_free_index(struct machine *m, uint32_t index, uint64_t now_ns);
/* Finds the parents of the processes that were there before, which came in any order. */
void machine_settle(struct machine *m);

typedef void (*machine_joins_fn)(void *context, const struct profile_process *process,
				 const struct machine_job *job);

/*
 * Comes when a job has begun: its root's descendants, which were there before, join it. Calls
 * tell() for each. Returns 0 or -ENOMEM.
 */
int machine_join_descendants(struct machine *m, struct machine_job *job, machine_joins_fn tell,
			     void *context);

/* As profile_mark_gone(), for all processes: if its exit was lost, a process does not count as
 * alive. */
void machine_mark_gone(struct machine *m, profile_is_there_fn is_there, void *context);

/* Ends the audit, and the jobs that still run. Returns 0 or -ENOMEM. */
int machine_finish(struct machine *m, uint64_t now_ns);

/* In no order. The array is valid until the next record. */
const struct profile_process *const *machine_processes(const struct machine *m, size_t *n);
/* Returns the process of that tgid that is alive, or ended last; or NULL. */
const struct profile_process *machine_process(const struct machine *m, uint32_t tgid);
/* Returns its index in machine_processes(). */
size_t machine_index(const struct profile_process *process);
/* Returns the job that it belongs to, or NULL. */
struct machine_job *machine_job_of(const struct profile_process *process);
/* Each returns a process that is alive, or NULL: its nearest ancestor, its first child, and the
 * next child of its parent. */
const struct profile_process *machine_parent(const struct profile_process *process);
const struct profile_process *machine_child(const struct profile_process *process);
const struct profile_process *machine_sibling(const struct profile_process *process);
/* Returns how many are alive. */
size_t machine_alive(const struct machine *m);
/* Notes what each process has now, for machine_growth(). */
void machine_mark(struct machine *m);
/* Returns by how much its RSS has grown since the machine_mark() before the last. */
int64_t machine_growth(const struct profile_process *process);
/* Notes what each process has used by now. */
void machine_look(struct machine *m, uint64_t now_ns);
/* Returns the time between the last two looks; 0: there were none, or one. */
uint64_t machine_looked_ns(const struct machine *m);
/* Returns what the process used between the last two looks. */
struct machine_used machine_used(const struct profile_process *process);
/* Begins to load a process that is looked at soon. Each lies somewhere else in memory, and where
 * there are many, waiting for one after the other takes most of the time. */
void machine_fetch(const struct profile_process *process);
/* In the order in which they began; valid until the next record. */
struct machine_job *const *machine_jobs(const struct machine *m, size_t *n);
/* Returns the job, or NULL: it is not kept any more. */
struct machine_job *machine_job_of_id(const struct machine *m, uint64_t id);
/* Files of the job are counted, and told with one of the following two. */
void machine_count_files(struct machine_job *job);
/* Takes them, from malloc(); counts those that may have been removed. */
void machine_set_files(struct machine *m, struct machine_job *job, struct job_files *files);
/* Nobody knows them: counts that. */
void machine_lack_files(struct machine *m, struct machine_job *job);
/* There was no room for the name of a file: counts that. */
void machine_lose_file_name(struct machine *m);
/* The job is sampled, which is told with one of the following two. */
void machine_await_stacks(struct machine_job *job);
/* Takes them, from malloc(). */
void machine_set_stacks(struct machine_job *job, struct job_stacks *stacks);
/* Nobody knows them: counts that. */
void machine_lack_stacks(struct machine *m, struct machine_job *job);
/* Counts what is not known of samples. */
void machine_lose_stacks(struct machine *m, const struct machine_stack_losses *more);
/* Returns whether the files or the stacks of a job that has ended are yet to come. */
bool machine_is_awaited(const struct machine_job *job);
/*
 * There may be thousands of jobs that have ended, and nobody looks at them before the report. So
 * their rows and phases are kept in few bytes from the end of another job on: they can be read
 * after machine_take_out(), which returns 0 or -ENOMEM, until machine_put_away().
 */
int machine_take_out(struct machine_job *job);
void machine_put_away(struct machine_job *job);
/* Sets *row to row i of the rows that the job kept, in order. Its texts are the machine's. */
void machine_row(const struct machine_job *job, size_t i, struct profile_checkpoint *row);
size_t machine_n_sums(const struct machine *m);
const struct machine_sum *machine_sum(const struct machine *m, size_t i);
struct machine_losses machine_losses(const struct machine *m);

/* Returns CLOCK_MONOTONIC as Unix seconds. */
double machine_unix_secs(const struct machine *m, uint64_t time_ns);

#endif
