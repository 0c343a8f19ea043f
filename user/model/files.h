/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * files.h - which files were read from storage and written, as the kernel side tells it
 * (wire_storage.h): the sums of a file before its first use in each step, and at last.
 */
#ifndef QPROF_MODEL_FILES_H
#define QPROF_MODEL_FILES_H

#include "base/hash.h"
#include "model/copies.h"
#include "model/profile.h"

enum {
	FILES_MAX_TOLD = 262144,    /* records that are kept, of all files */
	FILES_MAX_ONLY_SEEN = 4096, /* files that are known of looks alone */
};

/* What was read and written of a file until then, as in profile_file. */
struct file_told {
	uint64_t time_ns, read, written, called;
};

/* How much of a file processes had in memory, from a look on. */
struct file_seen {
	int look;
	uint64_t mapped, copied;
};

struct known_file {
	UT_hash_handle hh;
	struct wire_file id;
	struct profile_file pub;
	char *path;
	struct profile_file_use *uses;
	struct file_told *told;
	struct profile_file_point *points;
	size_t n_told, cap;
	struct file_seen *seen;
	size_t n_seen, seen_cap;
	struct file_seen now;	  /* at the look that is added */
	struct file_seen at_ends; /* the most that was told of a phase */
	bool is_only_seen;	  /* storage was not used for it */
	bool steps_lost;	  /* there was no room for a record */
	bool has_left;		  /* the memory, at the end: it may have no name any more */
};

struct files {
	struct known_file *by_id;
	struct profile_file *list; /* NULL before files_finish(): the largest first */
	size_t n;
	size_t n_told; /* of all files */
	struct copies copies;
	size_t n_seen, n_only_seen; /* of all files: struct file_seen; such files */
};

/* Takes a record. Returns 0 or -ENOMEM. */
int files_feed(struct files *files, const struct wire_stored *record);
int files_name(struct files *files, const struct wire_stored_name *record,
	       const struct profile_config *config);
/* A look at pages in memory. Returns 0 or -ENOMEM: then it counts for nothing. */
int files_copies(struct files *files, const struct profile_copies *copies,
		 const struct profile_config *config);
/* Where files were asked for: finds the largest, what phases used of them, when they were used, and
 * which were removed. Returns 0 or -ENOMEM. */
int files_finish(struct files *files, const struct profile_config *config,
		 const struct profile_phase *phases, size_t n_phases,
		 const struct profile_usage *total, uint64_t end_ns, struct profile_losses *losses);
/* After that. Returns the path of a file, or NULL. */
const char *files_path(const struct files *files, const struct wire_file *id);
void files_free(struct files *files);

#endif
