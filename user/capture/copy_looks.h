/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * copy_looks.h - when a run with --file-copies looks at which pages of mapped files are copies: as
 * phases end.
 *
 * A look that takes 1 ms has none follow for 9 ms, so that looks take a tenth of a CPU at most. But
 * the ends of several phases come together, one within the other. So what ends while a look is on
 * its way has one at once, if that look was not such a one itself.
 */
#ifndef QPROF_CAPTURE_COPY_LOOKS_H
#define QPROF_CAPTURE_COPY_LOOKS_H

#include "capture/wake.h"
#include "kernel/copies.h"
#include "model/profile.h"

struct capture;

struct copy_looks {
	struct capture *capture;
	struct profile *profile; /* is told of looks; NULL: there are none */
	struct copies_helper helper;
	struct wake answer, timer; /* timer: the look takes too long, or the rest is over */
	bool is_asked, is_due, is_again, has_warned;
	uint64_t asked_ns, took_ns; /* the look, and the one before */
	uint64_t due_ns;	    /* the end of a phase that waits for a look */
	uint64_t rest_ns;	    /* no look before */
};

/* Returns 0, or -1 and errno. copy_looks_close() frees it all. */
int copy_looks_open(struct copy_looks *l, struct capture *c, struct profile *profile);
void copy_looks_close(struct copy_looks *l);

/* A checkpoint was made: looks if it ends a phase. */
void copy_looks_checkpoint(struct copy_looks *l, const struct wire_checkpoint *checkpoint);
/* At the end: waits for a look that is on its way. */
void copy_looks_finish(struct copy_looks *l);

#endif
