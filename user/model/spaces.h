/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * spaces.h - how much room was left on the file systems that a tree writes to. The kernel side
 * tells how much was written (wire_storage.h); what is left was looked at by somebody.
 */
#ifndef QPROF_MODEL_SPACES_H
#define QPROF_MODEL_SPACES_H

#include "model/files.h"

struct known_space {
	uint32_t device; /* s_dev */
	char *mount;
	uint64_t id; /* if it was looked at */
	struct profile_space pub;
};

struct spaces {
	struct known_space *list; /* at most WIRE_SPACES */
	size_t n, cap;
	struct profile_space *seen; /* after spaces_finish() */
	size_t n_seen;
};

/* Takes a record. Returns 0 or -ENOMEM. */
int spaces_feed(struct spaces *spaces, const struct wire_space *record);
/*
 * base_name: without the directories above the mount. Another file system that has come to the same
 * device is none of ours: that is no answer. Returns 0 or -ENOMEM.
 */
int spaces_look(struct spaces *spaces, const struct profile_look *look, bool base_name);
/* After files_finish(). Counts what was written to and never seen, and looks without an answer.
 * Returns 0 or -ENOMEM. */
int spaces_finish(struct spaces *spaces, const struct files *files, uint64_t end_ns,
		  struct profile_losses *losses);
void spaces_free(struct spaces *spaces);

#endif
