/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job_stacks.h - the functions of a job of an audit that its memory was first touched by most, and
 * that used most of its CPU time. Pure, and bounded: a job tells JOB_STACKS_FUNCTIONS functions
 * apart while it is sampled, and keeps JOB_STACKS_MOST of each kind when it has ended.
 */
#ifndef QPROF_JOB_STACKS_H
#define QPROF_JOB_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JOB_STACKS_MOST = 5,
	JOB_STACKS_FUNCTIONS = 1024,
	JOB_STACKS_TEXT = 255, /* bytes of a name, and of a path, before they are repaired */
};

enum job_stacks_what { JOB_STACKS_MEMORY, JOB_STACKS_CPU, JOB_STACKS_WHATS };

struct job_function {
	/* Valid UTF-8. The name of one without is its file in brackets. path "": not known, or
	 * none. */
	char *name, *path;
	uint64_t amount; /* bytes; ns of CPU time */
};

/* Of memory, or of CPU time. All of it: list, others and unsampled. */
struct job_functions {
	bool is_sampled;
	struct job_function list[JOB_STACKS_MOST]; /* the largest first */
	size_t n;
	uint64_t others, other_amount; /* how many more functions there were, and what of them */
	uint64_t all;		       /* growth of RSS since sampling began; CPU time */
	uint64_t unsampled;	       /* what of it no sample has */
	uint64_t samples;	       /* that were taken, lost ones too */
};

struct job_stacks {
	struct job_functions of[JOB_STACKS_WHATS];
	uint64_t late_ns; /* when sampling began, since the job did */
};

/* Frees what was allocated with malloc(), too; NULL is fine. */
void job_stacks_free(struct job_stacks *stacks);

/* What a job that is sampled has so far. */
struct job_samples;

/* Returns NULL when out of memory. */
struct job_samples *job_samples_new(void);
void job_samples_free(struct job_samples *s);
/* Charges a function, however its name and path are written. Returns false if there is no room to
 * tell it apart: then it is one of the others. */
bool job_samples_add(struct job_samples *s, const char *name, const char *path,
		     enum job_stacks_what what, uint64_t amount);
/* Fills in the largest, and the rest of `all`. Returns 0 or -ENOMEM: then into is empty. */
int job_samples_sum(const struct job_samples *s, enum job_stacks_what what, uint64_t all,
		    uint64_t samples, struct job_functions *into);

#endif
