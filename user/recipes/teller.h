/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * teller.h - what the items of a recipe do, for one process: which phases begin and end as they are
 * met, whatever it is that they listen to.
 *
 * Pure: items in, marks out.
 */
#ifndef QPROF_TELLER_H
#define QPROF_TELLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipes/recipe.h"

enum { MARK_NAME_MAX = 256 /* bytes of a name, its NUL included */ };

/* How a recipe did, over all processes that it recognised. */
struct recipe_use {
	uint64_t processes;
	uint64_t finished; /* of them, those that ended with status 0 */
	uint64_t whole;	   /* of these, those that were there from their start on */
	uint64_t matched[RECIPE_MAX_ITEMS]; /* how often, by item */
	bool found[RECIPE_MAX_ITEMS];	    /* what it listens to is there, and was not met yet */
	bool missing[RECIPE_MAX_ITEMS];	    /* what it listens to is not where it is to be */
	bool unfit[RECIPE_MAX_ITEMS];	    /* it is there, and cannot be listened to */
	uint64_t buffered;   /* lines that shared a write with others: their time is late */
	uint64_t cut_lines;  /* longer than LOG_LINE_MAX */
	uint64_t cut_texts;  /* written at once, and too long to be looked at whole */
	uint64_t limited;    /* texts left out, as a process wrote too many in a time */
	uint64_t too_costly; /* matches given up */
	uint64_t too_deep;   /* steps of progress bars within eight others: no phases */
	uint64_t undrawn;    /* steps that a progress bar passed over: part of the phase before */
	uint64_t left_out[RECIPE_MAX_ITEMS]; /* calls and hits: there were too many in a second */
	uint64_t stopped[RECIPE_MAX_ITEMS];  /* functions and probes, no longer listened to */
};

/* What an item means. */
struct recipe_mark {
	enum recipe_does does; /* RECIPE_BEGIN, RECIPE_END, RECIPE_MARK; RECIPE_NOTHING: a metric */
	bool summary;
	bool has_value;	 /* the metric's text was a number */
	bool buffered;	 /* it is late: see struct recipe_words */
	bool died;	 /* of RECIPE_END: the phase did not end there, as far as is known */
	uint64_t number; /* of RECIPE_BEGIN and RECIPE_END: of the phase; 0: it has none */
	double value;
	const char *name; /* UTF-8 as far as its source is; valid until the function returns */
	const char
		*renamed; /* of RECIPE_END: what the phase is called from now on; NULL: as before */
};

/* Returns 0; anything else ends the call that tells. */
typedef int (*recipe_mark_fn)(void *context, const struct recipe_mark *mark);

/* Where marks go. */
struct recipe_tell {
	recipe_mark_fn mark;
	void *context;
};

/* Puts what its words stand for into a text of an item, cut to whole characters. */
struct recipe_words {
	void (*fill)(const void *context, const char *text, char out[MARK_NAME_MAX]);
	const void *context;
	bool buffered; /* the item was met earlier, nobody knows when: the program buffers */
};

struct teller;

/* The recipe and *use must outlive it. Returns NULL when out of memory. */
struct teller *teller_new(const struct recipe *recipe, struct recipe_use *use);
/* Of a process that another one started, which the recipe recognised: only items with `children`
 * are for it. */
struct teller *teller_new_child(const struct recipe *recipe, struct recipe_use *use);
void teller_free(struct teller *t);
bool teller_is_child(const struct teller *t);
const struct recipe *teller_recipe(const struct teller *t);
struct recipe_use *teller_use(struct teller *t);

/* An item of the recipe was met, by its index. Counts it, and tells what it means. Returns 0, or
 * what `to` did. */
int teller_act(struct teller *t, size_t at, const struct recipe_words *words,
	       const struct recipe_tell *to);
/* As teller_act(), but a phase goes on until teller_leave(), whatever else is open. `name` is given
 * to that. */
int teller_enter(struct teller *t, size_t at, const struct recipe_words *words,
		 const struct recipe_tell *to, char name[MARK_NAME_MAX]);
int teller_leave(const char *name, const struct recipe_tell *to);
/* The same, but nobody will know when it ends: it is not watched any longer. */
int teller_lose(const char *name, const struct recipe_tell *to);
/* The process ends: ends the phases that are open. */
int teller_end(struct teller *t, const struct recipe_tell *to);
/* As teller_end(), but a signal has killed the process. */
int teller_die(struct teller *t, const struct recipe_tell *to);

#endif
