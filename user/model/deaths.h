/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * deaths.h - which processes ended badly, and why.
 *
 * The OOM killer's choice is sure. A signal is awaited, until the exit of its process says that it
 * ended so.
 */
#ifndef QPROF_DEATHS_H
#define QPROF_DEATHS_H

#include "model/files.h"

struct death_list {
	struct profile_death *deaths;
	size_t n, cap;
};

enum { DEATHS_MAX_REFUSED = 4096 }; /* processes; the ends of some may be lost */

/* What GPUs refused a process last. */
struct gpu_refused {
	struct profile_gpu_refusal refusal;
	const char *phase; /* of the process, as it ends */
	bool is_last;	   /* it ends, and was given no memory there since */
};

struct deaths {
	struct death_list sure;	   /* in order of time */
	struct death_list awaited; /* each process by each signal at most once */
	struct gpu_refused *refused;
	size_t n_refused, room_for_refused;
};

/*
 * Takes a WIRE_DEATH, or a WIRE_ENDING, which may come to be how its process ends. phase: of the
 * process, or NULL; it must outlive the deaths. Counts what there is no room for. Returns 0, or
 * -ENOMEM.
 */
int deaths_feed(struct deaths *d, const struct wire_header *record, const char *phase,
		const struct profile_config *config, struct profile_losses *losses);
/* What the probe qprof:failed says of an exception: the low byte of its value. The rest of the
 * value is a number. All that is said after the first is about the same exception of the same
 * thread. */
enum deaths_said {
	SAID_FAILED = 0,    /* its words */
	SAID_IN_THREAD = 1, /* the same: it ends a thread, not the process */
	SAID_MORE = 2,	    /* more of its words */
	SAID_PHASE = 3,	    /* the phase that it left first */
	SAID_LIMIT = 4,	    /* what refused memory, by name; its limit */
	SAID_USED = 5,	    /* what was used of that */
	SAID_FULL = 6,	    /* where a full file system is mounted; the bytes that are left */
	SAID_QUOTA = 7,	    /* before SAID_FULL: whose quota it is, "user 1000"; its limit */
	SAID_FILE =
		8, /* the file that had no room, empty: not known; the bytes of its file system */
};

/* Takes what that probe says. text is valid UTF-8; the rest as in deaths_feed(). */
void deaths_fail(struct deaths *d, const struct wire_checkpoint *cp, const char *text,
		 const char *phase, uint64_t page_size, struct profile_losses *losses);
/*
 * A GPU has refused a process memory, and the process may end badly of that: unless it is given
 * some later, which the record at its end says. phase: as in deaths_feed(). Returns 0, or -ENOMEM.
 */
int deaths_refuse(struct deaths *d, const struct profile_gpu_refusal *refusal);
void deaths_gpu(struct deaths *d, const struct wire_gpu *record, const char *phase);
/* A process has ended: decides about what was awaited of it. */
void deaths_exit(struct deaths *d, const struct wire_process *event, struct profile_losses *losses);
/* After files_finish(): names the files that had no room. Returns 0 or -ENOMEM. */
int deaths_name_files(struct deaths *d, const struct files *files, bool base_names);
void deaths_free(struct deaths *d);

/*
 * Makes a path of the names of its directories, the last first: "job\0docker\0" is "/docker/job",
 * and "/" is no name at all. With `cut`, it begins with "...". Returns it, valid UTF-8 and
 * allocated, or NULL when out of memory.
 */
char *deaths_path(const char *names, size_t size, uint32_t n, bool cut);

#endif
