/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ledger.h - what a run with --files asks of the machine, for the model: where files are, and how
 * much room file systems have.
 *
 * Nothing tells how much room is left, and nobody polls for it. A file system that the tree writes
 * to is looked at when the kernel side says that it has written some MiB more (WIRE_SPACE), at
 * checkpoints, and at the end. After a look the next one waits for 50 times the CPU time it took,
 * or the time if its answer was waited for.
 */
#ifndef QPROF_CAPTURE_LEDGER_H
#define QPROF_CAPTURE_LEDGER_H

#include "capture/wake.h"
#include "kernel/mount_paths.h"
#include "kernel/patience.h"
#include "model/profile.h"

struct capture;

struct ledger {
	struct profile *profile;   /* is told of looks */
	struct mount_paths mounts; /* by which files have their paths */
	struct patience patience;  /* with file systems that do not answer */
	struct wake timer;	   /* for a look that waits */
	struct ledger_space {
		uint32_t device;
		bool is_due, was_written, was_seen;
		uint64_t id; /* of the file system that was seen first */
	} spaces[WIRE_SPACES];
	size_t n_spaces;
	uint64_t rest_ns; /* no look before */
};

/* Without it nothing is looked at. Returns 0, or -1 and errno. ledger_close() frees it all. */
int ledger_open(struct ledger *l, struct capture *c, struct profile *profile);
void ledger_close(struct ledger *l);

/* For struct profile_config. */
char *ledger_place(struct ledger *l, const struct wire_stored_name *record, const char *within);
void ledger_there(const struct ledger *l, const struct wire_file *files,
		  enum profile_there *answers, size_t n);
/* The tree has written to a file system. */
void ledger_written(struct ledger *l, const struct wire_space *record);
/* A checkpoint was made: looks at all that it writes to. */
void ledger_checkpoint(struct ledger *l);
/* At the end: has the kernel side tell of all files, and reads it. Where there is a service, that
 * does so. */
void ledger_tell(struct capture *c);
/* Then: looks once more. */
void ledger_look_last(struct ledger *l);

#endif
