/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wishes.h - places that recipes want to hear of: functions and USDT probes by name. A file is
 * searched for them when a process maps it that uses the recipe.
 *
 * A list may be a job's, of a run that is served: its places are told of that job alone. They are
 * asked for by its user, so they are looked for in files that he may read, take from his share of
 * sites, and go with the job, each file's by itself.
 */
#ifndef QPROF_WISHES_H
#define QPROF_WISHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "kernel/engine.h"
#include "kernel/probes.h"
#include "kernel/sites.h"

enum {
	WISHES_MAX = 64,     /* lists: bits of a word */
	WISHES_OF_JOBS = 32, /* of them, at a time; of a user, no more than are left for others */
	WISH_GROUPS = 64,    /* of a user, that are known */
	/* Items of jobs have numbers from here on: recipes have lower ones. */
	WISH_ITEMS_OF_JOBS = 1 << 30,
};

/* An item of a recipe. */
struct wish {
	uint32_t item;		       /* as in struct wire_item_key */
	bool function;		       /* else a USDT probe */
	bool mark;		       /* its hits are marks that it names itself; see sites.h */
	bool returns;		       /* of the function, too */
	const char *pattern;	       /* of the function's name; of PROVIDER:NAME */
	uint32_t args;		       /* bits of the arguments that it uses */
	uint8_t texts[WIRE_HIT_TEXTS]; /* those that are texts; WIRE_HIT_ARGS: none */
	uint64_t places;	       /* that were found so far */
	uint64_t limited;	       /* of a job, at its end: hits that were too many */
};

/* A file in which places of a job are attached. */
struct wish_file {
	struct wire_file key;
	uint32_t group;	 /* of what is attached */
	uint64_t digest; /* of the places */
};

/* Whose places alone they are. */
struct wish_job {
	uint32_t job;
	uid_t uid;
	gid_t gid, groups[WISH_GROUPS];
	size_t n_groups;
	struct wish_file *files;
	size_t n, room;
	bool has_items;	      /* not only marks */
	unsigned int retries; /* of searches that failed */
	uint64_t unreadable;  /* files that the user may not read: how often they were met */
};

/* What the items of a recipe want; of the caller, and outlives the wishes, or is removed. */
struct wish_list {
	struct wish *wishes;
	size_t n;
	struct wish_job *of; /* NULL: it is for all that use its recipe */
};

struct wishes {
	struct wish_list *lists[WISHES_MAX]; /* NULL: the bit is free */
	uint64_t of_jobs;		     /* lists that are jobs' */
	struct wisher *wishers;		     /* processes */
};

/* A file that is searched. */
struct wish_search {
	struct engine *engine;
	struct sites *sites;
	int fd;
	uint32_t group;	  /* of what is attached */
	const char *path; /* to be shown */
	uint64_t *digest;
	bool comparing;	   /* only the digest is wanted */
	uint64_t until_ms; /* then nothing more is attached; 0: as long as it takes */
	bool attached;	   /* something was */
	bool cut;	   /* something was not, for want of time */
	bool held;	   /* something was not: see holders.h */
	void (*warn)(void *context, const char *what, const char *why);
	void *context;
};

/* Returns the bit of a list, which is added if it is new; 0 if there are too many, or its user has
 * had his share. */
uint64_t wishes_add(struct wishes *w, struct wish_list *list);
/* Nobody uses it any more. */
void wishes_remove(struct wishes *w, const struct wish_list *list);
/* Returns the bit of the list of a job; 0: it has none. */
uint64_t wishes_of_job(const struct wishes *w, uint32_t job);
/* Says which lists a process uses, of recipes; and of its job. */
void wishes_use(struct wishes *w, uint32_t tgid, uint64_t lists);
void wishes_use_of_job(struct wishes *w, uint32_t tgid, uint64_t lists);
uint64_t wishes_of(const struct wishes *w, uint32_t tgid);
void wishes_free(struct wishes *w);
/* Returns false if no function of the file may be probed for the list. */
bool wishes_may_probe_functions(const struct wish_list *list, int fd);
/* Searches a file for what the lists want, and attaches it. */
void wishes_search(struct wishes *w, uint64_t lists, struct wish_search *search);

#endif
