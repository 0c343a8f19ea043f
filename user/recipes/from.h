/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * from.h - the parts of the marker (recipe_marker.h): who uses which recipes, and for each kind of
 * item a file that hears what it listens to: from_log.c, from_place.c.
 *
 * A recipe is chosen when a record arrives, while a program with new code may wait: from_X_begin()
 * sets up what the kernel side needs. What is heard comes later and in order, from_X_text() or the
 * like, and becomes checkpoints of the process by marking.h.
 */
#ifndef QPROF_FROM_H
#define QPROF_FROM_H

#include "base/hash.h"
#include "capture/marker.h"
#include "capture/source.h"
#include "kernel/budget.h"
#include "kernel/wishes.h"
#include "recipes/begun.h"
#include "recipes/calls.h"
#include "recipes/log_reader.h"
#include "recipes/marking.h"
#include "recipes/python_items.h"
#include "recipes/rules_look.h"

enum { TOOL_SLOT = 0 /* of the tool's recipe */ };

/* A run that is served as a job: see struct marker. */
struct heard_job {
	uint32_t job, uid;
	size_t processes; /* of it that use recipes, or are heard for it, now */
	struct source_heard what;
	UT_hash_handle hh;
};

/* A process that a recipe has recognised, or may yet recognise; or another of its program. */
struct recipe_user {
	uint32_t tgid;
	uint64_t started_ns;
	const struct recipe *recipes[RECIPE_SLOTS]; /* NULL: none */
	/* The recipes with items for children, of the process that started it. */
	const struct recipe *from_parent[RECIPE_SLOTS];
	bool inherits[RECIPE_SLOTS];	       /* recipes[] is of its parent */
	struct heard_job *heard;	       /* the run that is told of it; NULL: none */
	struct teller *tellers[RECIPE_SLOTS];  /* of the records that are fed; NULL: none */
	struct log_reader *logs[RECIPE_SLOTS]; /* of those with items of a log */
	struct calls calls;		       /* of functions, that it is in */
	struct begun begun;		       /* phases of all kinds of items */
	uint64_t executed_ns; /* the record of its exec, by which its recipes were chosen; or 0 */
	uint32_t told;	      /* what is told of it: enum wire_told */
	uint64_t texts;	      /* in a served run: that were told of it */
	bool asks;	      /* libraries or files may decide which tool it is */
	bool unlooked;	      /* it could not be looked at, for want of time */
	bool hinges;	      /* other arguments of its program might be a recipe's */
	bool changed;	      /* it runs something else, once the WIRE_EXEC is fed */
	bool whole;	      /* what it runs was recognised by its start, not later */
	char *modules[PYTHON_MODULES_MAX]; /* of Python, that conditions ask for */
	size_t n_modules;
	uint64_t met[RECIPES_MAX / 64]; /* recipes that count it as their process */
	struct file_phase *files;	/* that it is reading or writing; the latest first */
	bool marked;			/* it has marks of its own, or by other items */
	UT_hash_handle hh;
};

struct recipe_marker {
	struct marker marker;	 /* first: see marker_of() */
	struct capture *capture; /* known from the first record on */
	struct recipes *recipes;
	char *rest; /* the directory of those that are not read yet; NULL: all are */
	size_t n_slots;
	struct rules_match *match[RECIPE_SLOTS];
	struct recipe_user *users;
	struct heard_job *heard;	     /* runs that are served, by job */
	struct budget looks;		     /* at their processes */
	struct recipe_use *uses;	     /* of each recipe */
	struct recording_recipe *told;	     /* of each recipe that recognised a process */
	struct recording_recipe_item *items; /* of all of them */
	uint64_t lost_events; /* of processes, when it was last looked for gone ones */
	struct wish_list wishes[RECIPES_MAX]; /* of each recipe: functions and probes */
	bool deaf;			      /* the kernel side cannot hear logs: said once */
	bool placeless;			      /* nor functions and probes */
	bool ends_hold;			 /* arguments that decide by their ends hold programs */
	bool starts;			 /* the hooks of Python know the recipes */
	struct python_items python;	 /* what they know */
	struct descendant *descendants;	 /* of processes whose recipes have programs */
	bool blind;			 /* the kernel side cannot see files: said once */
	uint64_t file_phases;		 /* so far: the number of the last one */
	struct wire_checkpoint file_end; /* the end of a file's use that waits; what is 0: none */
};

/* recipe_ready.c: all recipes are read. Returns 0, or -1: out of memory. */
int recipe_marker_make_room(struct recipe_marker *m);
/* As struct marker has it. */
int recipe_marker_ready(struct marker *marker, const char **variable, struct error *err);
/* Reads those that nobody has waited for; the capture may have failed after that. */
void recipe_marker_read_rest(struct recipe_marker *m, struct capture *c);

/* Returns NULL if nothing is known of the process. */
struct recipe_user *recipe_user_of(struct recipe_marker *m, uint32_t tgid);
/* Returns what is known of the process, anew if there was nothing; NULL when out of memory. */
struct recipe_user *recipe_user_get(struct recipe_marker *m, uint32_t tgid, uint64_t started_ns);
/* Takes the recipe of a slot by which a process was recognised; NULL: what its parent has for it.
 */
void recipe_user_choose(struct recipe_user *user, size_t slot, const struct recipe *own);
/* It runs another program, of which the record has arrived. What it maps or opens may make it a
 * recipe's later. */
void recipe_user_executed(struct recipe_marker *m, const struct wire_process *exec);
/* Returns true if it has a recipe. */
bool recipe_user_uses_any(const struct recipe_user *user);
/* Returns the run that is told of a job's processes, or NULL. */
struct heard_job *recipe_marker_heard_job(const struct recipe_marker *m, uint32_t job);
/* In an audit: returns true if another process may use recipes; heard: of that run, or NULL. Warns
 * if not. */
bool recipe_marker_has_room(struct recipe_marker *m, const struct heard_job *heard);
/* Returns true if it may be looked at by /proc: of a run that is served, its user has a share of
 * the time. Then recipe_user_looked() takes what that took. */
bool recipe_user_may_look(struct recipe_marker *m, const struct recipe_user *user);
void recipe_user_looked(struct recipe_marker *m, const struct recipe_user *user, uint64_t cpu_ns);
/* It has mapped more, of which the record has arrived. */
void recipe_user_mapped(struct recipe_marker *m, const struct wire_header *mapped);
/* What it does is told of for that run, too, or no more (NULL). */
void recipe_user_hear(struct recipe_user *user, struct heard_job *heard);
/* A process that is there from now on: it may have a parent with recipes for its children. */
void recipe_user_forked(struct recipe_marker *m, const struct wire_process *fork);
/* Its recipes are known: has the kernel side listen. What is made of it starts at once; after an
 * exec, with its record. */
void recipe_user_begin(struct recipe_marker *m, struct recipe_user *user);
/* Nobody listens to it any more: it runs something else, or has ended. */
void recipe_user_end(struct recipe_marker *m, const struct recipe_user *user);
void recipe_user_forget(struct recipe_marker *m, struct recipe_user *user);
/* What it runs is over: ends the phases that are open. Returns 0, or -1: the capture ends. */
int recipe_user_over(struct recipe_marker *m, struct recipe_user *user, struct marking *to);
/* Returns the recipe that the match of a slot has found, or NULL. */
const struct recipe *recipe_found(const struct recipe_marker *m, size_t slot,
				  const struct rule *rule);
/* What a look at a process is offered to: the first n slots, but those whose recipe is known. */
struct look_matches recipe_marker_matches(const struct recipe_marker *m,
					  const struct recipe *const *known, size_t n);
struct recipe_use *recipe_use_of(struct recipe_marker *m, const struct recipe *recipe);

/* Has the kernel side listen to what it writes, if one of its recipes wants that. */
void from_log_begin(struct recipe_marker *m, struct capture *c, const struct recipe_user *user);
/* It runs something else, or ends. */
void from_log_end(struct recipe_marker *m, struct capture *c, const struct recipe_user *user);
/* Has a service tell what these items listen to. */
void from_log_hear(const struct recipe *recipe, struct source_heard *heard);
void from_file_hear(const struct recipe *recipe, struct source_heard *heard);
/* Returns true if the recipe has items for the children of a process. */
bool from_log_wants_children(const struct recipe *recipe);
/* What it has written, or that it ends. Returns 0, or -1: the capture ends. */
int from_log_text(struct recipe_marker *m, const struct wire_checkpoint *text, struct marking *to);

/* It uses the recipe: counts it as a process of it, once. */
void recipe_user_meets(struct recipe_marker *m, struct recipe_user *user,
		       const struct recipe *recipe);
/* Looks by all that is known of it which recipes recognise it, where none does yet, and begins. */
void recipe_user_look(struct recipe_marker *m, struct recipe_user *user);

/* Returns true for what a hook of Python says. */
bool from_python_is(const struct recipe_marker *m, const struct wire_checkpoint *cp);
/* It has left its ring. */
void from_python_arrived(struct recipe_marker *m, const struct wire_checkpoint *said);
/* Returns 0, or -1: the capture ends. */
int from_python_said(struct recipe_marker *m, const struct wire_checkpoint *said,
		     marker_feed_fn feed, void *context);
/* It runs something else, or is gone. */
void from_python_end(struct recipe_user *user);

/* The same of functions that it calls and probes that it hits. */
void from_place_begin(struct recipe_marker *m, struct capture *c, const struct recipe_user *user);
void from_place_end(struct recipe_marker *m, struct capture *c, const struct recipe_user *user);
int from_place_hit(struct recipe_marker *m, const struct wire_checkpoint *cp, struct marking *to);
/* Returns how many functions or probes an item was found to mean. */
uint64_t from_place_found(const struct recipe_marker *m, size_t recipe, size_t item);
/* Of a run that is served: what became of its places. */
void from_place_take_account(struct recipe_marker *m, const struct source_account *account);
void from_place_free(struct recipe_marker *m);

/* Programs that its descendants run. Its recipes are known; see recipe_user_begin(). */
void from_exec_begin(struct recipe_marker *m, struct recipe_user *user);
/* Returns what the recipe has told of its processes: enum wire_told. */
uint32_t from_exec_told_for(const struct recipe *recipe);
/* Has the kernel side tell this of the process, too: enum wire_told. */
void from_exec_tell(struct recipe_marker *m, struct recipe_user *user, uint32_t told);
/* Records in order. */
void from_exec_forked(struct recipe_marker *m, const struct wire_process *fork);
void from_exec_executed(struct recipe_marker *m, const struct wire_process *exec);
void from_exec_exited(struct recipe_marker *m, const struct wire_header *exit);
/* In an audit: a process of a job, which was there before the job. */
void from_exec_was_there(struct recipe_marker *m, const struct profile_process *process);
/* A WIRE_PROGRAM. Returns 0, or -1: the capture ends. */
int from_exec_told(struct recipe_marker *m, const struct wire_checkpoint *cp, marker_feed_fn feed,
		   void *context);
void from_exec_free(struct recipe_marker *m);

/* Of an audit that serves runs: see struct marker. */
void recipe_marker_hear(struct marker *marker, struct capture *c, uint32_t job, uint32_t uid,
			const struct source_heard *what);
void recipe_marker_hear_process(struct marker *marker, uint32_t job, uint32_t tgid,
				uint64_t started_ns);
void recipe_served_free(struct recipe_marker *m);

/* What the file says of the marker's work: see struct marker. */
const struct recording_recipe *recipe_marker_tell(struct recipe_marker *m, struct capture *c,
						  size_t *n);

#endif
