/* SPDX-License-Identifier: GPL-2.0-only */
/* guest.h - one run at the service: its connection, its job, and the records of that. */
#ifndef QPROF_GUEST_H
#define QPROF_GUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "capture/capture.h"
#include "kernel/mount_paths.h"
#include "service/backlog.h"
#include "service/places.h"
#include "service/talk.h"

enum guest_state {
	GUEST_SERVED, /* it has a job */
	GUEST_ENDS,   /* and wants the account */
	GUEST_LEAVES, /* all was said; what is in the backlog is to be sent */
	GUEST_GONE,   /* to be closed */
};

/* What a process had used before it was this run's; found by its start. */
struct base {
	uint64_t started_ns;
	uint32_t tgid;
	struct wire_usage used;
};

struct bases {
	struct base *list; /* by tgid */
	size_t n, room;
};

struct guest {
	struct guest *next;
	void *service;
	enum guest_state state;
	uint32_t events; /* that wake us up */
	struct ucred caller;
	uint32_t job;	   /* 0: none, or none any more */
	uint32_t was_job;  /* the number of its job that is over; 0: it is not */
	uint32_t root;	   /* the command's process, or the first that was asked for */
	uint32_t files;	   /* the number of its records of files; 0: none are told */
	struct wake talks; /* its connection: see places.h */
	uint64_t until_ns; /* by then it has come further, or is closed; 0: it may take its time */
	uint64_t started_ns;		/* of the command's */
	uint64_t begin_ns;		/* records from before are of another job of that number */
	uint64_t finished_ns;		/* it has come, or the job is over; 0: not yet */
	struct rings_mark rest;		/* what there was by then, if the service was behind */
	struct places *places;		/* that it is told of; NULL: none */
	struct mount_paths mounts;	/* of the processes that used files */
	struct bases bases;		/* what processes had used by then */
	struct source_account at_begin; /* what was counted by then */
	struct backlog backlog;
	size_t room; /* bytes that the backlog may grow by before the next batch */

	bool watched;
	bool runs;	  /* its processes ran before they were served */
	bool has_begun;	  /* the command has */
	bool has_started; /* all is known of what ran before */
	bool has_spoken;  /* its first packet was looked at */
	bool asked;	  /* for WIRE_FINISH */
	bool has_rest;	  /* rest is known */
	bool asked_files; /* for what is told of files at last */
	bool has_files;	  /* that has come */
};

/* Returns who is told of a record, of the guests of jobs by their numbers, and of all; NULL: nobody
 * is. */
struct guest *guest_of_record(struct guest *const of_job[WIRE_MAX_JOBS], struct guest *all,
			      const struct wire_header *h);
/* What was counted by now, on the whole machine. */
struct source_account guest_counted(struct capture *c);

/* Takes a record of its job, from begin_ns on. site: the name of the site of a checkpoint. process:
 * what is known of its process, or NULL. */
void guest_tell(struct guest *g, const struct wire_header *h, const char *site,
		const struct profile_process *process);
/* Takes a record of its files: of the names, those that its processes see. */
void guest_tell_file(struct guest *g, const struct wire_header *h, struct budget *looks);
/* Says what was lost while it was served; stopped: the service ends. Nothing is told after it. */
void guest_tell_account(struct guest *g, struct capture *c, bool stopped);
/* Says what it can expect of the service. */
void guest_welcome(struct guest *g, struct capture *c);
/* Refuses it, in a sentence, and is done with it. */
void guest_refuse(struct guest *g, const char *why);

/* Frees what it keeps of processes. */
void guest_free(struct guest *g);

#endif
