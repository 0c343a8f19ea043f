/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * windows.h - in which repeats of a phase samples are taken: as the run goes on, whether they are
 * to be taken now; and at the end, of which time they count.
 *
 * The phases of each process whose names match are counted in the order in which they begin: so
 * many are skipped, so many come for the warm-up, so many are active, and then again. An active one
 * is a window. Samples are taken while a phase is open that is active or a warm-up, and from the
 * end of the one before: whoever reads checkpoints is late for the beginning of a phase.
 *
 * Example, skip=1,active=1 of 'Layer *', in one process:
 *   begin Layer 0   end Layer 0   begin Layer 1   end Layer 1   begin Layer 2
 *                   samples from here           to here; the window is Layer 1
 */
#ifndef QPROF_MODEL_WINDOWS_H
#define QPROF_MODEL_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

enum {
	WINDOWS_MAX = 65536,
	WINDOWS_MAX_TURNS = 1000000, /* of each kind */
};

struct window_schedule {
	unsigned int skip, warmup, active, repeat; /* repeat: 0: again and again */
};

/* A checkpoint. */
struct window_at {
	uint64_t ns;	 /* CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* that the tree had used */
	struct profile_sums sums;
};

struct window_span {
	struct window_at from, to;
};

/* Returns the part that is in both. */
struct window_span window_overlap(const struct window_span *a, const struct window_span *b);

struct window {
	struct window_span span;
	const char *name; /* of the phase */
	uint32_t tgid;
	uint64_t late_ns; /* from its beginning until samples were taken; all of it, if none were */
	uint64_t on_ns;
};

struct windows;

/* pattern: of names (fnmatch), which must outlive it. Returns NULL when out of memory. */
struct windows *windows_new(const struct window_schedule *schedule, const char *pattern);
void windows_free(struct windows *w);

/* Takes a row, and what there was so far at it. Returns 0, or -ENOMEM. */
int windows_step(struct windows *w, const struct profile_checkpoint *step,
		 const struct profile_sums *sums);
/* A process has ended. Its phases stay open. */
void windows_exit(struct windows *w, uint32_t tgid, uint64_t started_ns);
/* Returns true if samples are to be taken now. */
bool windows_wanted(const struct windows *w);
/* Returns true if a window is open. */
bool windows_open(const struct windows *w);
/* They are taken since ns; or not any more. */
void windows_switched(struct windows *w, bool on, uint64_t ns);
/* The run has ended: with its last row, and what is open ends, too. */
void windows_finish(struct windows *w, uint64_t ns);

/* After windows_finish(): in the order in which they began. */
const struct window *windows_list(const struct windows *w, size_t *n);
/* The same in order of time, those that overlap or touch as one. Returns NULL when out of memory;
 * else it is the caller's. */
struct window_span *windows_merged(const struct windows *w, size_t *n);

struct windows_totals {
	const char *pattern;
	struct window_schedule schedule;
	uint64_t matched;     /* phases whose names match */
	uint64_t sampling_ns; /* for how long samples were taken */
	uint64_t dropped;     /* phases that there was no room for: they are no windows */
};
struct windows_totals windows_totals(const struct windows *w);

#endif
