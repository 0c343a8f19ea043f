/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job_files.h - the files that a job of an audit used storage for most, and the sums of the rest.
 * Pure, and bounded: a job has JOB_FILES_MOST of them. While they are counted, names are kept of
 * all that have one, for nobody knows which will be the largest: a caller bounds their bytes.
 */
#ifndef QPROF_MODEL_JOB_FILES_H
#define QPROF_MODEL_JOB_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

enum {
	JOB_FILES_MOST = 5,
	JOB_FILES_MAX_PATH = 512, /* bytes of a name, before it is repaired: see file_name_of() */
};

struct job_file {
	char *path;
	uint64_t read, written; /* bytes, from storage and to it, as in struct profile_file */
	bool is_deleted;	/* it had no name any more, when it was last seen */
	bool is_unsure;		/* it was written, and nobody knows whether it has one */
};

struct job_files {
	struct job_file list[JOB_FILES_MOST]; /* the largest first */
	size_t n;
	uint64_t others;		    /* how many more files there were */
	uint64_t other_read, other_written; /* of these, and of what is no file */
	uint64_t late_ns;		    /* when counting began, since the job did */
};

/* Zeroed: none. */
struct job_names {
	struct job_name *by_file;
	size_t bytes; /* of all */
};

bool job_names_has(const struct job_names *names, const struct wire_file *file);
/* Names a file. Takes path, from malloc(); it is freed if there is no memory. */
void job_names_keep(struct job_names *names, const struct wire_file *file, char *path);
void job_names_free(struct job_names *names);

/* Takes the sums of a file, once for each. Returns 0 or -ENOMEM. */
int job_files_add(struct job_files *files, const struct job_names *names,
		  const struct wire_stored *sums);
/* Takes all that is used so far, into none. Returns 0 or -ENOMEM. */
int job_files_take(struct job_files *files, const struct job_names *names,
		   const struct wire_stored_largest *largest);
/* Frees what was allocated with malloc(), too; NULL is fine. */
void job_files_free(struct job_files *files);

#endif
