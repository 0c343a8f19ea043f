/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * profile_internal.h - what the files of the model share, by subject. Nobody else includes it.
 *
 * Everything grows only with what is bounded: phases and their names, processes, the buffers of the
 * timeline. A checkpoint by itself leaves nothing behind.
 */
#ifndef QPROF_PROFILE_INTERNAL_H
#define QPROF_PROFILE_INTERNAL_H

#include "base/amounts.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/names.h"
#include "model/pairing.h"
#include "model/peak.h"
#include "model/profile.h"

static inline uint64_t point_rss(const struct profile_point *point)
{
	return point->file + point->anon + point->shmem;
}

/* What the kernel cannot take back as it can file pages: it is in RAM or in swap. */
static inline uint64_t point_need(const struct profile_point *point)
{
	return point->anon + point->shmem + point->swap;
}

/* processes.c */

struct process_key {
	uint64_t started_ns;
	uint64_t tgid;
};

/* A text that several have. */
struct shared_text {
	size_t owners;
	char text[];
};

/* Of a process: see tracks.c. */
struct track {
	struct profile_share now;
	struct profile_share at_peak; /* valid if epoch is that of the tracks; else it is now */
	uint64_t highest;	      /* RSS, of its points */
	uint32_t epoch;
	bool seen;    /* it had a point */
	bool dropped; /* others need the room */
};

struct process {
	struct profile_process pub; /* first: what callers hold */
	struct track track;
	struct process_key key;
	struct shared_text *cmdline;
	size_t at;	  /* in processes.list */
	uint64_t seen_ns; /* of the newest record that its memory is from */
	unsigned int open_phases;
	unsigned int dropped_begins; /* phases begun but not kept, whose end may come yet */
	bool by_tgid;		     /* it is in the table of that name */
	UT_hash_handle hh;
	UT_hash_handle hh_tgid;

	/* Of an audit: see machine.c. */
	bool known;
	struct process *children, *prev, *next;	 /* by pub.parent */
	struct process *ended_prev, *ended_next; /* of those of its user */
	struct process *job_prev, *job_next;	 /* of those of its job */
	unsigned int pins; /* by whom it must not be removed, beside open phases */
};

struct processes {
	struct process *by_key;
	struct process *by_tgid; /* the latest of each tgid */
	struct profile_process **list;
	size_t n, cap;
	size_t max;    /* of n */
	uint32_t live; /* with memory of their own */
	struct profile_losses *losses;
	/* Removes one, when there are max; false: there is none to remove. NULL: there never is. */
	bool (*make_room)(struct processes *ps);
};

/* The one at index i of the list. */
static inline struct process *process_at(const struct processes *ps, size_t i)
{
	return (struct process *)((char *)ps->list[i] - offsetof(struct process, pub));
}

/* *found is NULL if there is no room for it. 0 or -ENOMEM. */
int processes_get(struct processes *ps, const struct wire_header *h, struct process **found);
/* The one of that record, or NULL. */
struct process *processes_find(const struct processes *ps, const struct wire_header *h);
/* The latest of that tgid, or NULL. */
struct process *processes_of_tgid(const struct processes *ps, uint32_t tgid);
/* *about is the one of the record, or NULL, as above. */
int processes_event(struct processes *ps, const struct wire_process *event, uint64_t page_size,
		    struct process **about);
/* Likewise of an exit after the run: it has ended, and what it had by then is not of the run. */
void processes_ended_later(struct processes *ps, const struct wire_process *event);
void processes_remove(struct processes *ps, struct process *process);
void processes_checkpoint(struct process *process, const struct wire_checkpoint *cp,
			  uint64_t page_size);
/* The process that it is of; NULL: not known. */
struct process *processes_point(struct processes *ps, const struct wire_point *point,
				uint64_t page_size);
/* The first that the user named, or else the first; NULL if there is none. */
const struct profile_process *processes_main(const struct processes *ps);
/* See profile_mark_gone. */
void processes_mark_gone(struct processes *ps, profile_is_there_fn is_there, void *context);
/* The highest RSS that any of them has had alone. */
uint64_t processes_highest(const struct processes *ps);
uint64_t processes_highest_hugetlb(const struct processes *ps);
void processes_usage(const struct processes *ps, struct profile_usage *sum);
void processes_free(struct processes *ps);

/*
 * A profile whose processes are in a table of more than its own: that of a whole machine. It has no
 * processes of its own then, and its main process is the one of its WIRE_START.
 */
struct profile *profile_new_among(const struct profile_config *config, struct processes *ps);
/* Phases that it keeps from now on; those that it has stay. */
void profile_keep_phases(struct profile *p, size_t max);
size_t profile_n_phases(const struct profile *p);
/* Of the last checkpoint, or NULL: there was no room for it. */
struct process *profile_who(const struct profile *p);

struct profile_memory memory_from_wire(const struct wire_memory *m, uint64_t page_size);

/* phases.c */

/* The tree at the moment a phase begins or ends. */
struct moment {
	uint64_t time_ns;
	uint64_t rss;
	struct profile_usage usage;
};

struct phases {
	struct profile_phase *list;
	struct peak *peaks; /* when, within the phase of the same index, it had its peak */
	size_t n, cap, peaks_cap;
	size_t max; /* of n */
	struct pairing pairing;
	struct profile_losses *losses;
};

/* A step that passed, as the phases see it. process is NULL if there was no room for it. */
struct phase_event {
	enum wire_what what;
	struct process *process;
	uint32_t tgid, tid;
	const struct profile_name *name;
	struct moment now;
};

void phases_init(struct phases *phases, size_t max, struct profile_losses *losses);
/* Takes the highest RSS since the last checkpoint; before phases_step of the same checkpoint. */
void phases_fold(struct phases *phases, const struct peak *peak);
/* 0, or -ENOMEM and nothing was changed. A phase's text is that of its name in names. */
int phases_step(struct phases *phases, struct names *names, const struct phase_event *event);
void phases_finish(struct phases *phases, const struct moment *now);
const char *phases_innermost(const struct phases *phases);
/* See profile_open_phases. */
size_t phases_open(const struct phases *phases, const struct profile_phase **open, size_t max);
void phases_free(struct phases *phases);

/* summaries.c */

struct summaries {
	struct profile_metric *list;
	size_t n, cap;
	const char **definitions;
	size_t n_definitions, definitions_cap;
};

/* The last value of a name counts. False when full or out of memory, as the next. */
bool summaries_set(struct summaries *s, const struct interned *name,
		   const struct profile_metric *value);
/* Once, however often it is said. */
bool summaries_define(struct summaries *s, const struct interned *definition);
void summaries_free(struct summaries *s);

/* timeline.c */

enum {
	/* Points in memory before they are thinned to PROFILE_MAX_POINTS. */
	TIMELINE_CAP = 4 * PROFILE_MAX_POINTS,
	/* Of the finished points, those that may be a peak. */
	TIMELINE_MAX_PEAKS = PROFILE_MAX_POINTS / 2,
	TIMELINE_PEAKS_CAP = 2 * TIMELINE_MAX_PEAKS,
};

struct timeline {
	struct profile_point *points;
	size_t n;
	unsigned int shift; /* of the time: points of equal time_ns >> shift are thinned together */
	struct peak *peaks; /* of the steps */
	size_t n_peaks;
	unsigned int peaks_shift;
	uint64_t thinned;
};

/* none: nothing is kept of it. */
int timeline_init(struct timeline *t, bool none);
void timeline_point(struct timeline *t, const struct profile_point *point);
void timeline_peak(struct timeline *t, const struct peak *peak);
/*
 * Leaves at most PROFILE_MAX_POINTS from start_ns on, in order, the peaks of steps and of n phases
 * marked. Sets *overall_ns to when the overall peak was. 0 or -ENOMEM.
 */
int timeline_finish(struct timeline *t, uint64_t start_ns, const struct peak *phases, size_t n,
		    const struct peak *overall, uint64_t *overall_ns);
void timeline_free(struct timeline *t);

/* tracks.c */

enum {
	/* Points in memory before they are thinned to PROFILE_MAX_TRACK_POINTS. */
	TRACKS_CAP = 4 * PROFILE_MAX_TRACK_POINTS,
	/* Those whose lowest and highest point are sure to stay, and their ends. */
	TRACKS_MAX_PROCESSES = PROFILE_MAX_TRACK_POINTS / 4,
};

struct tracks {
	struct profile_track_point *points;
	size_t n;
	unsigned int shift;
	uint64_t thinned;

	uint64_t peak;			    /* in pages: the highest that points told of */
	uint32_t epoch;			    /* counts these */
	struct profile_point at_peak, last; /* the tree at the peak, and at the last point */
	struct profile_share *shares;
	size_t n_shares;
};

/* none: nothing is kept, neither points nor shares. */
int tracks_init(struct tracks *t, bool none);
/* What it has when it is first heard of, unless points have said so already. */
void tracks_joined(struct process *process, const struct profile_memory *memory);
/* process: whose point it is, NULL if that is not known. 0 or -ENOMEM. */
int tracks_point(struct tracks *t, const struct processes *ps, struct process *process,
		 const struct wire_point *wire, const struct profile_point *tree,
		 uint64_t page_size);
/* Leaves at most PROFILE_MAX_TRACK_POINTS, in order; and the shares at the peak. 0 or -ENOMEM. */
int tracks_finish(struct tracks *t, const struct processes *ps);
void tracks_free(struct tracks *t);

#endif
