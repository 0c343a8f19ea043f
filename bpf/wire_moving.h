/* SPDX-License-Identifier: GPL-2.0-only */
/* wire_moving.h - the part of wire.h that is about processes that run already, and are served. It
 * is apart from it, as nobody else needs it. */
#ifndef QPROF_WIRE_MOVING_H
#define QPROF_WIRE_MOVING_H

enum { WIRE_TARGETS = 10 /* that a user names for one job */ };

/* What a walk of move_members() is to do; the loader fills it in. */
struct wire_moving {
	__u32 job;    /* that processes join, */
	__u32 leaves; /* or, 1: that all of its processes leave; */
	__u32 tells;  /* or, 1: that it tells of children of theirs that have not joined */
	__u32 gid;    /* the group of the user for whom it is served */
	__u32 self;   /* whoever asks for it joins no job of his own */
	__u32 n_targets;
	__u32 target[WIRE_TARGETS];
	/* Out: */
	__u32 moved;  /* processes, by this walk: another may find more */
	__u32 served; /* targets that are in a job that is served already */
};

#endif
