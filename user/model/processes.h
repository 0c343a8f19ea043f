/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * processes.h - a table of processes, of a run's tree or of a whole machine. Any record creates the
 * process that it is about, so a lost record costs only what it said.
 */
#ifndef QPROF_PROCESSES_H
#define QPROF_PROCESSES_H

#include "model/profile.h"

/* A text that several processes share. */
struct shared_text {
	size_t owners;
	char text[];
};

/* What a process of a run holds as time goes on: see process_timeline.c. */
struct holding {
	struct profile_share now;
	struct profile_share at_peak; /* valid if `epoch` is the timeline's; else it is `now` */
	uint64_t highest;	      /* RSS at its points */
	uint32_t epoch;
	bool seen;    /* it had a point */
	bool dropped; /* larger processes need the room of its points */
};

/* An audit keeps 32,768 of them: nothing here that few of them need. */
struct process {
	struct profile_process pub; /* first: callers hold this */
	struct shared_text *cmdline;
	struct process *next; /* in its bucket */
	uint64_t seen_ns;     /* time of the newest record that told its memory */
	uint64_t gpu_ns;      /* the same of a point of its memory on GPUs */
	uint32_t at;	      /* index in processes.list */
	uint32_t open_phases;
	uint32_t dropped_begins; /* phases that were not kept, and whose end may come yet */
	bool gpu_is_over;	 /* its end has told what it had on GPUs: later points lack that */
};

struct processes {
	/*
	 * By tgid: a power of 2 of lists, the latest process first. A handle of uthash would take
	 * 56 bytes of each process, and there would have to be two, as a tgid comes again.
	 */
	struct process **buckets;
	size_t n_buckets;
	struct profile_process **list;
	size_t n, cap;
	size_t max;  /* of n */
	size_t size; /* bytes of each; what is behind its struct process is the caller's, zeroed */
	uint32_t live; /* processes with memory of their own */
	struct profile_losses *losses;
	/* Removes a process when there are `max`. Returns false if none can go. May be NULL. */
	bool (*make_room)(struct processes *ps);
};

/* Returns the process at index i of the list. */
static inline struct process *process_at(const struct processes *ps, size_t i)
{
	return (struct process *)((char *)ps->list[i] - offsetof(struct process, pub));
}

/* Of a process of a run: it is behind the process, where a machine has what only audits need. */
static inline struct holding *holding_of(const struct process *process)
{
	return (struct holding *)(process + 1);
}

/* Finds or adds a record's process; *found is NULL if there is no room. Returns 0 or -ENOMEM. */
int processes_get(struct processes *ps, const struct wire_header *h, struct process **found);
/* Returns a record's process, or NULL if it is not known. */
struct process *processes_find(const struct processes *ps, const struct wire_header *h);
/* Returns the latest process of that tgid, or NULL. */
struct process *processes_of_tgid(const struct processes *ps, uint32_t tgid);

/* Applies a fork, exec or exit. Sets *about as processes_get() does. Returns 0 or -ENOMEM. */
int processes_event(struct processes *ps, const struct wire_process *event, uint64_t page_size,
		    struct process **about);
/* Applies an exit after the run: the process has ended, but its last figures are not the run's. */
void processes_ended_later(struct processes *ps, const struct wire_process *event);
/* Nothing more is told of the process of a record: how it ends is not known. */
void processes_lose(struct processes *ps, const struct wire_header *h);
void processes_checkpoint(struct process *process, const struct wire_checkpoint *cp,
			  uint64_t page_size);
/* Applies a point. Returns its process, or NULL if that is not known. */
struct process *processes_point(struct processes *ps, const struct wire_point *point,
				uint64_t page_size);
/* See profile_mark_gone(). */
void processes_mark_gone(struct processes *ps, profile_is_there_fn is_there, void *context);
void processes_remove(struct processes *ps, struct process *process);
void processes_free(struct processes *ps);

/* Returns the first process that the user named, else the first, or NULL if there is none. */
const struct profile_process *processes_main(const struct processes *ps);
/* Returns the highest RSS that one process has had. */
uint64_t processes_highest(const struct processes *ps);
/* Returns the most hugetlb memory that one process was seen with. */
uint64_t processes_highest_hugetlb(const struct processes *ps);
/* Sets *sum to what all processes have used. */
void processes_usage(const struct processes *ps, struct profile_usage *sum);

struct profile_memory memory_from_wire(const struct wire_memory *m, uint64_t page_size);

#endif
