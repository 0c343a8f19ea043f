/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * discovery_state.h - what a discovery has, for the sources of discovery.h: discovery.c, the search
 * of a file, and discovery_process.c, the search of what a process has mapped.
 */
#ifndef QPROF_DISCOVERY_STATE_H
#define QPROF_DISCOVERY_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "kernel/budget.h"
#include "kernel/content_aside.h"
#include "kernel/discovery.h"
#include "kernel/known_files.h"
#include "kernel/pacing.h"
#include "kernel/patience.h"
#include "kernel/sites.h"
#include "kernel/wishes.h"

enum { DISCOVERY_NAMED = 16 };

/* What a child has left, see discovery_note_stray(). */
struct stray {
	uint32_t group;
	struct wire_file file;
	int lease;
	pid_t child;
};

struct discovery {
	struct engine *engine;
	discovery_warn_fn warn;
	void *context;
	struct known_files files;
	struct sites sites;
	struct wishes wishes;
	int lease_signal;
	uint32_t groups;
	struct content content;	  /* of the file that is being searched */
	struct patience patience; /* with file systems that do not answer */
	struct pacing pacing;	  /* in an audit */
	struct budget others;	  /* likewise, CPU time for files of users; else all zero */
	uid_t owner;		  /* of the file that is being searched, */
	bool bounded;		  /* and its search is charged to him */
	bool spent;		  /* a file was put off, as nothing is left for its owner */
	int timer;	     /* when the next search is due that was put off; -1: not an audit */
	uint64_t unsearched; /* files that were not searched when a process had mapped them */
	uint64_t put_off;    /* searches of processes that change their mappings too often */
	uint64_t doubtful;   /* see discovery_doubtful() */
	bool warned;	     /* of the file that is being searched */
	/* The process that is being searched has mapped files of that kind, known from before. */
	bool met_partial, met_doubtful;
	int epoll;	 /* of the timers, and of probes that are being removed */
	int sweep;	 /* the timer of files that nobody has mapped; -1: none yet */
	bool sweeps;	 /* it is set */
	bool keeps;	 /* what is searched stays known, though nobody maps it */
	size_t sweep_at; /* so many sites: then all files are looked at */
	struct stray *stray;
	size_t n_stray, stray_room;
	uint32_t gpu_user; /* see discovery_gpu_user() */
	bool cut;	   /* the search of a process took too long, and is to go on */
	struct pace_key named[DISCOVERY_NAMED]; /* processes that a warning names */
	size_t n_named;
};

/* Returns the file if it was searched and has not changed since, else NULL. */
struct known_file *discovery_find_searched(struct discovery *d, const struct wire_mapping *m);
/*
 * Takes note of a file. If it is known with another content, its probes are detached first: a probe
 * in the middle of an instruction would break a program that runs it. Returns NULL if there is no
 * memory, there are too many files, or its old probes wait for their removal (which is counted).
 */
struct known_file *discovery_note_file(struct discovery *d, const char *path,
				       const struct wire_mapping *m);
void discovery_forget_file(struct discovery *d, struct known_file *file);
/* Somebody is in the way of probes: counts that, and says of whose programs. */
void discovery_note_held(struct discovery *d);
/* As above, and the file has no probes for a while. */
void discovery_leave_held(struct discovery *d, struct known_file *file);
/* Says of whose programs something was left out: by the user, as one has any number of files. */
void discovery_warn_of_user(struct discovery *d, pid_t pid, const char *why);
/* Adds a file; makes room by letting go of others. Returns NULL if there is none. */
struct known_file *discovery_add_file(struct discovery *d, const struct wire_file *key);
/* Lets go of files. Returns true if sites will be given back in a moment. */
bool discovery_make_room(void *discovery);
/*
 * The search of a file by a child (d->content.child) has failed: it may have attached probes as
 * that group, and may not have ended yet. lease: a descriptor that holds up who writes the file, or
 * -1; it is closed when the child has ended, and its probes with it.
 */
void discovery_note_stray(struct discovery *d, uint32_t group, const struct wire_file *file,
			  int lease);
bool discovery_is_stray(const struct discovery *d, uint32_t group);
/* Looks for files that nobody has mapped, if it is time. */
void discovery_sweep(struct discovery *d);
/* In an audit: searches of files that are not root's have bounds (discovery_others.c). */
void discovery_bound_others(struct discovery *d);
void discovery_begin_file(struct discovery *d, const struct stat *st);
/* As content_search(), or content_search_wishes() if wishes_alone. Returns 0; -EDQUOT: nothing is
 * left for its owner (d->spent); or -errno as content_search_aside(). What was not searched is
 * counted. */
int discovery_search_content(struct discovery *d, int fd, const char *path, uint64_t lists,
			     bool wishes_alone);
enum discovery_lease {
	DISCOVERY_LEASED,  /* it may be searched; without a lease where there can be none */
	DISCOVERY_CHANGED, /* it is not what was mapped any more */
	DISCOVERY_WRITTEN, /* in an audit: somebody writes it, so nothing may be attached */
};

/* Takes a lease on a file, unless it has one: before it is searched, and anything attached. */
enum discovery_lease discovery_lease_file(struct discovery *d, struct known_file *file, int fd,
					  const struct wire_mapping *m);
/* Returns a copy of a lease: the lease ends when all are closed. -1: there is none. */
int discovery_another(int lease);
/* Returns the file in which a job has places as that group; NULL: there is none, or it is not known
 * any more. */
const struct known_file *discovery_file_of_places(const struct discovery *d, uint32_t group);
/* Whoever had probes in a file lets go of it. Returns a copy of its lease, or -1; if nobody has
 * probes in it any more, the lease itself, which the file loses. */
int discovery_lease_after(struct known_file *file);
/* Gives the lease back of a file to which nothing is attached. */
void discovery_unlease_file(const struct discovery *d, struct known_file *file);
/* Searches a file, which was searched for all else, for places of jobs. */
void discovery_search_places(struct discovery *d, const struct content_file *of, uint64_t lists);
/* Removes probes of places that are not what they were: its times have changed. */
void discovery_compare_places(struct discovery *d, struct known_file *file, int fd,
			      const char *path);
/* Removes the probes of all places of jobs in the file, before the others. */
void discovery_detach_places(struct discovery *d, struct known_file *file);
/* Returns the CPU time that searches have taken, ours and that of children, from some time on. */
uint64_t discovery_cpu_ns(void);
/* mapped: the mapping that the descriptor should lead to, or NULL. */
void discovery_search_open_file(struct discovery *d, int fd, const char *hostile_path,
				const struct wire_mapping *mapped, uint64_t lists);

#endif
