/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * marker.h - makes checkpoints of what programs say in other ways than by probes.
 *
 * A capture has at most one marker. It sees all records: as they leave the ring, while a program
 * with new code may wait, and later in order. It answers a WIRE_TEXT with the checkpoints that the
 * model then gets in its place.
 */
#ifndef QPROF_MARKER_H
#define QPROF_MARKER_H

#include "base/error.h"
#include "capture/source.h"
#include "format/recording.h"
#include "model/profile.h"

struct capture;

/* Gives a record to the model and the listeners. Returns 0, or -1: the capture ends. */
typedef int (*marker_feed_fn)(void *context, const struct wire_header *record);

struct marker {
	/*
	 * Of a run, once, before its first record; a command that is to be started waits meanwhile,
	 * and the service that was asked is at work. variable: NULL if there is no command with
	 * hooks; else it is set to what they are to find in the environment (HOOKS_RECIPES), valid
	 * until the first record, or to NULL for nothing. Returns 0, or -1 and *err.
	 */
	int (*ready)(struct marker *m, const char **variable, struct error *err);
	/* A record has left its ring; records before it may still be queued. */
	void (*arrived)(struct marker *m, struct capture *c, const struct wire_header *h);
	/* Returns true if each process with this one's code is to wait when it starts, although its
	 * code was searched before: what is set up for it is its own. */
	bool (*holds)(struct marker *m, uint32_t tgid);
	/* Gives the model what comes of a record, itself included. Returns as `feed` does. */
	int (*record)(struct marker *m, const struct wire_header *h, marker_feed_fn feed,
		      void *context);
	/*
	 * In an audit: from now on a run of that user is served as a job, and is told this of all
	 * its processes; NULL: nobody is any more. Those that are born or execute a program later
	 * are taken by their records, those that run already by hear_process().
	 */
	void (*hear)(struct marker *m, struct capture *c, uint32_t job, uint32_t uid,
		     const struct source_heard *heard);
	void (*hear_process)(struct marker *m, uint32_t job, uint32_t tgid, uint64_t started_ns);
	/* Returns what the file says of the marker's work, valid until close(). Called once, at the
	 * end; warns of what did not work. */
	const struct recording_recipe *(*tell)(struct marker *m, struct capture *c, size_t *n);
	/* Frees the marker. */
	void (*close)(struct marker *m);

	bool listens; /* it has recipes */
};

#endif
