/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compare_files.h - what storage was used for on both sides, file by file, matched by path.
 * Files of a directory that never had a name are one: "/tmp/#".
 *
 * A run that tells of files and not of this one used nothing of it. Where files beyond a bound were
 * left in "(other)", nobody knows. Nor does anybody of what was mapped or copied, unless the
 * profile says it of the file: it may have been less than 1 MiB, or there was no look.
 */
#ifndef QPROF_COMPARE_FILES_H
#define QPROF_COMPARE_FILES_H

#include "report/compare.h"

enum file_metric {
	FILE_READ,    /* bytes from storage */
	FILE_CALLED,  /* bytes read by calls, from storage or from the page cache */
	FILE_WRITTEN, /* bytes */
	FILE_REREAD,  /* how often a block was read, in hundredths */
	FILE_MAPPED,  /* bytes in memory of processes, the most at the end of a phase */
	FILE_COPIED,  /* bytes of copies of its pages, the same */
	FILE_METRICS,
};

struct compared_file;

/* A growing list of them. Zeros are an empty one. */
struct compared_files {
	struct compared_file **items;
	size_t n, cap;
	struct compared_file *by_key;
	struct compared_run {
		bool tells, tells_calls, tells_mapped, tells_copied, leaves_out;
	} runs[2][COMPARE_MAX_RUNS];
	size_t n_runs[2];
};

/* Adds those of a profile. Returns 0 or -ENOMEM. */
int compared_files_add(struct compared_files *files, enum compare_side side,
		       const struct recording *r);
void compared_files_free(struct compared_files *files);
/* Returns whether a run of the side tells of files. */
bool compared_files_tell(const struct compared_files *files, enum compare_side side);
/* Sorts the items: what has changed most comes first. */
void compared_files_sort(const struct compared_files *files);

/* Returns the path; *is_rest is set if it is no file. */
const char *compared_file_path(const struct compared_file *file, bool *is_rest);
struct compare_values compared_file_values(const struct compared_files *files,
					   const struct compared_file *file, enum compare_side side,
					   enum file_metric metric);
/* Returns whether 1 MiB and a hundredth more or less was read, written, mapped or copied, or a MiB
 * was read a tenth more or less often. */
bool compared_file_is_change(const struct compared_files *files, const struct compared_file *file);

#endif
