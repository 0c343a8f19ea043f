/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * touched.h - what of memory's growth a function was the first to touch: of the run, of a phase.
 * And what of the CPU time it has used, of GPUs' memory it has allocated, and what it has given
 * back: touched_of() makes stacks of these that read alike.
 */
#ifndef QPROF_TOUCHED_H
#define QPROF_TOUCHED_H

#include "format/recording.h"

#define TOUCHED_WHOLE_RUN UINT32_MAX

enum { TOUCHED_MAX_DEPTH = 1024 }; /* calls from the outermost function to the innermost */

struct touched_function {
	uint32_t function; /* index into stacks.functions */
	uint64_t amount;   /* bytes, or ns */
	uint64_t kernel;   /* the part of CPU time that was in the kernel */
};

/* What stands in stacks of CPU time for the kernel, as the innermost function; it is in no file. */
#define TOUCHED_KERNEL "[kernel]"

struct touched {
	struct touched_function *list; /* the largest first */
	size_t n;
	uint64_t grown;	    /* by which RSS of the tree grew; CPU time; allocated on GPUs */
	uint64_t unsampled; /* of these: what no sample has */
	uint64_t outside;   /* of these: what was in no window */
};

/* Checks what a file says of stacks: all that is named by an index is there, no stack is deeper
 * than TOUCHED_MAX_DEPTH, and rows are in order of phases. A partial file has no stacks then,
 * nor one that does not say of what they are.
 * Derives which phases have used CPU time. Returns NULL, or what is wrong. */
const char *touched_check(struct recording *r);

/* What stacks are of. */
enum touched_what {
	TOUCHED_MEMORY,
	TOUCHED_CPU,
	TOUCHED_GPU,
	TOUCHED_COMPARED, /* so many are compared with those of other runs */
	TOUCHED_BACK = TOUCHED_COMPARED,
	TOUCHED_WHATS
};

/* Returns the profile's stacks of memory, or those of the others in their place; without
 * `has`, if that was not sampled. What they point at is the profile's. */
struct recording_stacks touched_of(const struct recording *r, enum touched_what what);
/* Bytes or a time, for people. Returns out. */
char *touched_amount(char *out, enum touched_what what, uint64_t amount);

/* The rows of stacks.touched that are of a phase: from the result on, *n of them. */
const struct recording_touched *touched_rows(const struct recording_stacks *s, uint32_t phase,
					     size_t *n);
/* By how much RSS of the tree grew in a phase; the CPU time that it used; what it allocated. */
uint64_t touched_growth(const struct recording_stacks *s, uint32_t phase);
/* What ended in a phase with its process, or at an exec. */
uint64_t touched_ended(const struct recording_stacks *s, uint32_t phase);
/* What of that was in no window; 0 without windows. */
uint64_t touched_outside(const struct recording_stacks *s, uint32_t phase);
/* Returns false if all of the phase was in no window: it was not sampled. */
bool touched_is_sampled(const struct recording_stacks *s, uint32_t phase);
/* And what of the rest no sample has. */
uint64_t touched_unsampled(const struct recording_stacks *s, uint32_t phase);
/* Returns true, and *err, if the profile has no stacks of that; of TOUCHED_WHATS: none at all. */
bool touched_is_missing(const struct recording *r, enum touched_what what, struct error *err);
/* Returns the function that a stack is charged to, by the index of its innermost call. */
uint32_t touched_who(const struct recording_stacks *s, uint32_t call);
/* Returns whether the functions of a file of that name, without its directory, touch memory for
 * whoever calls them: memset(), operator new, and all that an interpreter does for a function of
 * Python. */
bool touched_is_for_others(const char *file);
/* Charges each stack to the innermost function that has a name and is not the C or C++ library's:
 * memset() touches for whoever called it, and so is the kernel busy. Returns 0, or -1 when out of
 * memory. */
int touched_by_function(const struct recording_stacks *s, uint32_t phase, struct touched *into);
void touched_free(struct touched *t);

/* A line of Python. */
struct touched_line {
	uint32_t function; /* index into stacks.functions */
	uint32_t line;
	uint64_t amount;
};

/* Charges each stack to the innermost line of Python in it, if it has one: *list is the caller's,
 * *n of them, the largest first. Returns 0, or -1 when out of memory. */
int touched_by_line(const struct recording_stacks *s, uint32_t phase, struct touched_line **list,
		    size_t *n);

/* A function, and what it and all that it called were the first to touch and have given back. */
struct touched_net {
	uint32_t function; /* index into stacks.functions */
	uint64_t grown, back;
};

/* Sets *list to the functions that did both, *n of them, the one with most left first; it is the
 * caller's. Without those that have left nothing, that are libraries' for others or have no name,
 * and that in all stacks call one and the same function, which says it. Returns 0, or -1 when out
 * of memory. */
int touched_left(const struct recording *r, uint32_t phase, struct touched_net **list, size_t *n);

/* What a function is called where there is no room for more: its name, or its file in brackets. */
enum { TOUCHED_NAME_MAX = 2048 };
const char *touched_name(char out[TOUCHED_NAME_MAX], const struct recording_function *f);
/* The same of a call; of a function of Python: "load (model.py:12)". */
const char *touched_call_name(char out[TOUCHED_NAME_MAX], const struct recording_stacks *s,
			      uint32_t call);
/* The name of its file without its directory. */
const char *touched_file(const struct recording_function *f);

#endif
