/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wishes.h - places that recipes want to hear of: functions and USDT probes by name. A file is
 * searched for them when a process maps it that uses the recipe.
 */
#ifndef QPROF_WISHES_H
#define QPROF_WISHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/engine.h"
#include "kernel/probes.h"
#include "kernel/sites.h"

enum { WISHES_MAX = 64 /* recipes with wishes: bits of a word */ };

/* An item of a recipe. */
struct wish {
	uint32_t item;		       /* as in struct wire_item_key */
	bool function;		       /* else a USDT probe */
	bool returns;		       /* of the function, too */
	const char *pattern;	       /* of the function's name; of PROVIDER:NAME */
	uint32_t args;		       /* bits of the arguments that it uses */
	uint8_t texts[WIRE_HIT_TEXTS]; /* those that are texts; WIRE_HIT_ARGS: none */
	uint64_t places;	       /* that were found so far */
};

/* What the items of a recipe want; of the caller, and outlives the wishes. */
struct wish_list {
	struct wish *wishes;
	size_t n;
};

struct wishes {
	struct wish_list *lists[WISHES_MAX];
	size_t n;
	struct wisher *wishers; /* processes */
};

/* A file that is searched. */
struct wish_search {
	struct engine *engine;
	struct sites *sites;
	int fd;
	uint32_t group;	  /* of what is attached */
	const char *path; /* to be shown */
	uint64_t *digest;
	bool comparing; /* only the digest is wanted */
	bool attached;	/* something was */
	bool held;	/* something was not: see holders.h */
	void (*warn)(void *context, const char *what, const char *why);
	void *context;
};

/* Returns the bit of a list, which is added if it is new; 0 if there are too many. */
uint64_t wishes_add(struct wishes *w, struct wish_list *list);
/* Says which lists a process uses. */
void wishes_use(struct wishes *w, uint32_t tgid, uint64_t lists);
uint64_t wishes_of(const struct wishes *w, uint32_t tgid);
void wishes_free(struct wishes *w);
/* Searches a file for what the lists want, and attaches it. */
void wishes_search(struct wishes *w, uint64_t lists, struct wish_search *search);

#endif
