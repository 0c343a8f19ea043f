/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * python_items.h - what the import hook (user/sdk/python/qprof/_recipes.py) is to know of recipes,
 * and what it says.
 *
 * It knows by a variable in the environment of the command, and of all that the command starts.
 * Fields of a line are separated by tabs:
 *
 *	1 1744830464                                     the format, the set
 *	m llmcompressor*                                 a module that a recipe recognises a tool by
 *	i 3 0 phase quark.torch:*.quantize Quantize {0}  an item: recipe, item, what it does, where,
 *	                                                 name; then "m" or "s", name, value of
 *metrics
 *
 * It says it by the probe qprof:item(name, what). The process may say anything: what it says is
 * checked, and counts for its own profile.
 */
#ifndef QPROF_PYTHON_ITEMS_H
#define QPROF_PYTHON_ITEMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "recipes/recipe.h"

enum {
	PYTHON_ITEMS_MAX = 64 << 10, /* bytes of the variable; the kernel takes 128 KiB of each */
	PYTHON_MODULES_MAX = 16,     /* of a process, that conditions ask for */
};

struct python_items {
	char *text;		    /* the value of the variable; NULL: there is nothing to know */
	uint32_t set;		    /* tells these recipes from those of another qprof-bpf */
	bool left_out[RECIPES_MAX]; /* the items of a recipe found no room */
	bool modules_left_out;	    /* nor did modules of conditions */
};

/* Returns 0, or -1: out of memory. */
int python_items_write(struct python_items *items, const struct recipes *recipes);
void python_items_free(struct python_items *items);
/* Returns the number of the set whose lines they are, all but the first. Pure. */
uint32_t python_items_number(const char *lines);

/*
 * What is to be known of all recipes of a directory, written down in its file python.items: to read
 * that, and to see that the recipes are the same, takes a tenth of the time that they take. Writes
 * what belongs into it. Returns 0, or -1 and *err.
 */
int python_items_keep(const char *directory, FILE *out, struct error *err);
/* Takes the text and the set from there. Returns false if there is none or not all of it, or the
 * recipes or qprof-bpf are not the same. */
bool python_items_take_kept(struct python_items *items, const char *directory);

enum python_said {
	PYTHON_IMPORTS, /* the module of that name; it belongs to no item */
	PYTHON_FOUND,	/* a function of the item */
	PYTHON_MISSING, /* its module is there, a function is not */
	PYTHON_UNFIT,	/* what is there cannot be wrapped */
	PYTHON_BEGIN,
	PYTHON_END,
	PYTHON_MARK,
	PYTHON_MET, /* the item was met, and has only metrics */
};

/* The second argument of the probe. */
struct python_what {
	enum python_said said;
	bool counts; /* the item was met by this, and not before */
	uint32_t item, recipe, set;
};

/* Returns false for what no hook says. */
bool python_what_read(uint64_t value, struct python_what *what);

#endif
