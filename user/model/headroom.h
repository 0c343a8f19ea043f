/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * headroom.h - how much memory a tree has left until a limit: its memory cgroups', the machine's,
 * or that of a process's address space. Pure; limits are looked up by who feeds it.
 *
 * A look at a limit costs system calls, and is rare. Between two looks, what the tree holds tells:
 * if a cgroup has 10 GiB left while the tree holds 50, it has 6 left when the tree holds 54.
 */
#ifndef QPROF_HEADROOM_H
#define QPROF_HEADROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

enum { HEADROOM_LIMITS = 16, HEADROOM_OF_MAX = 256 };

/* A limit, as of a look. */
struct headroom_look {
	unsigned int index; /* the limit's own, below HEADROOM_LIMITS */
	const char *of;	    /* "cgroup /job", "machine", "RLIMIT_AS" */
	uint64_t limit, left;
	uint64_t least;	  /* that has been left so far, as the kernel remembers; or left */
	bool of_process;  /* it is about one process, or some: what the tree holds does not tell */
	uint64_t time_ns; /* of the look: records from before it may come after it */
};

struct headroom_limit {
	struct headroom_look now; /* limit is 0 before the first look */
	char of[HEADROOM_OF_MAX]; /* valid UTF-8 */
	int64_t others;		  /* in use, beside what the tree holds */
	uint64_t others_ns;	  /* of the record that says what it held */
	uint64_t most, most_ns;	  /* that the tree held since, and when; 0: no record has come */
	uint64_t least, least_ns; /* that was left, and when */
	uint64_t least_limit;	  /* then */
	uint64_t least_held;	  /* by the tree, then */
	bool warned;
};

/* All zero at first. */
struct headroom {
	struct headroom_limit limits[HEADROOM_LIMITS];
	uint64_t held; /* by the tree: anon and shmem, without what a fork gave to children */
	uint64_t held_ns;
};

/* When to warn: nothing is both. */
struct headroom_warning {
	double used_percent; /* of a limit, at least; 0: that does not count */
	uint64_t left;	     /* at most */
};

/*
 * Takes what the tree holds from a point or a checkpoint. Returns false for another record. The two
 * are of two rings, so a record may come after a later one: the rest is asked only when all records
 * that were there have been taken.
 */
bool headroom_record(struct headroom *h, const struct wire_header *record, uint64_t page_size);
/* Takes a limit, as it was after the last record. */
void headroom_look(struct headroom *h, uint64_t time_ns, const struct headroom_look *look);
/* Returns a limit that the tree has come to, once each; or NULL. A limit that others fill, while
 * the tree holds less than is left, is none of its business. */
const struct headroom_limit *headroom_warns(struct headroom *h, const struct headroom_warning *at);
/* Returns the limit of which the least was left; NULL: none is known. */
const struct headroom_limit *headroom_closest(struct headroom *h);
/* Returns the limit of which the least is left now, and how much; or NULL. */
const struct headroom_limit *headroom_now(const struct headroom *h, uint64_t *left);
/* Whether it is worth a word: less than half of the limit is left. */
static inline bool headroom_is_short(uint64_t limit, uint64_t left)
{
	return left < limit / 2;
}

#endif
