/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recipe.h - a tool: how its processes are recognised, and what tells where it is.
 *
 * docs/recipes.md describes the files. Everything that they hold is checked when they are read: a
 * pattern compiles, a $N has its group.
 */
#ifndef QPROF_RECIPE_H
#define QPROF_RECIPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "recipes/args.h"
#include "recipes/line_pattern.h"
#include "recipes/rules.h"

enum {
	RECIPES_MAX = 256,	  /* in a set */
	RECIPE_SLOTS = 8,	  /* recipes of a process: one of a tool, and those beside it */
	RECIPE_MAX_ITEMS = 32,	  /* of a recipe: what a line has matched is a word of bits */
	RECIPE_NUMBERS = 1 << 25, /* see struct recipe */
	RECIPE_MAX_VALUES = 8,	  /* metrics of an item */
	RECIPE_TEXT_MAX = 512,	  /* bytes of a pattern or a text */
	RECIPE_LITERAL_MAX = 8,	  /* bytes of a literal that the kernel side compares */
	RECIPE_NAME_MAX = 64,
};

/* What an item listens to. */
enum recipe_source {
	RECIPE_LOG,    /* lines of stdout and stderr */
	RECIPE_SYMBOL, /* calls of functions */
	RECIPE_PYTHON, /* calls of functions: "MODULES:NAMES", both with wildcards */
	RECIPE_FILE,   /* files that it reads and writes */
	RECIPE_EXEC,   /* programs that its descendants run */
	RECIPE_USDT,   /* hits of USDT probes */
	RECIPE_SOURCES,
};

/* What an item does with the name of its text. */
enum recipe_does {
	RECIPE_NOTHING,
	RECIPE_PHASE, /* begins a phase, and ends the one before of this item */
	RECIPE_BEGIN,
	RECIPE_END,
	RECIPE_MARK,
	RECIPE_PROGRESS, /* the phase "NAME STEP/OF", until the bar shows another step */
};

/* A metric. Both are texts as an item's name is. */
struct recipe_value {
	const char *name, *value;
	bool summary; /* of the whole run */
};

/* A checkpoint of the tool. In its texts a word stands for what is known when it is met: $1 is the
 * first group of a log's pattern, and $$ a dollar; in all others {word}, such as {layer.name}, an
 * attribute of an argument of a call: see braces.h. */
struct recipe_item {
	enum recipe_source source;
	const char *text; /* what it listens for, as the recipe says it */
	enum recipe_does does;
	const char *name;      /* NULL for RECIPE_NOTHING */
	const char *step, *of; /* of RECIPE_PROGRESS: numbers */
	struct recipe_value values[RECIPE_MAX_VALUES];
	size_t n_values;

	bool optional;		      /* need not be met in each run of the tool */
	struct line_pattern *pattern; /* of RECIPE_LOG */
	const char *literal;	      /* of RECIPE_LOG; NULL: none */
	bool children;		      /* of RECIPE_LOG: also of what the process starts */
	bool at_return;		      /* of RECIPE_PYTHON: when the call has returned */
	struct recipe_args args; /* of RECIPE_SYMBOL and RECIPE_USDT: those that its texts name */
	const char **names;	 /* of RECIPE_FILE: patterns */
	size_t n_names;
	struct rules *programs; /* of RECIPE_EXEC: a rule that they meet */
};

struct recipe {
	const char *name;
	const char *read_from; /* the tool's source, its version; NULL: not said */
	struct recipe_item *items;
	size_t n_items;
	bool beside;	   /* is used beside the recipe of the tool, not in its place */
	bool until_marked; /* its files are no phases once the process has a mark by other means */
	char line_end;	   /* ends a line of its log, as a newline does; '\0': none */
	bool asked;	   /* the user has named it: is to know if it cannot be used */
	bool matches;	   /* processes are recognised; else its items find theirs: RECIPE_PYTHON */
	uint32_t number;   /* below RECIPE_NUMBERS; the same for all who have read these items */
};

/* Recipes, in the order in which they are tried. */
struct recipes;

/* Returns NULL when out of memory. */
struct recipes *recipes_new(void);
void recipes_free(struct recipes *r);
/* Appends the recipe of a file, unless there is one of that name. Returns 0; or -1 and *err: the
 * set is unusable. */
int recipes_read(struct recipes *r, const char *path, struct error *err);
/* Appends the recipe of a text of len bytes, which messages call name. */
int recipes_parse(struct recipes *r, const char *name, const char *text, size_t len,
		  struct error *err);
/* Calls `each` for the path of each recipe, *.yaml, of a directory, in the order of their names,
 * until one returns other than 0. Returns that; or -1 and *err. */
int recipes_each_file(const char *directory,
		      int (*each)(void *context, const char *path, struct error *err),
		      void *context, struct error *err);
/* Appends all of a directory. */
int recipes_read_all(struct recipes *r, const char *directory, struct error *err);
size_t recipes_count(const struct recipes *r);
const struct recipe *recipes_at(const struct recipes *r, size_t i);
/* Those that are there were named by the user. */
void recipes_mark_asked(struct recipes *r);
/* Returns NULL if there is none of that name. */
const struct recipe *recipes_named(const struct recipes *r, const char *name);
/* The number of an item, by which its hits are known: see struct wish. */
uint32_t recipe_item_number(const struct recipe *recipe, size_t item);
/* Returns the recipe of an item of that number, and which item it is; NULL: there is none. */
const struct recipe *recipes_of_item(const struct recipes *r, uint32_t number, size_t *item);
/* Returns true if one of its items listens to this. */
bool recipe_has(const struct recipe *recipe, enum recipe_source source);
/* Returns true for a function or a probe. */
bool recipe_is_place(const struct recipe_item *item);
/* The word that begins an item of this source in a file: "log". */
const char *recipe_source_key(enum recipe_source source);

/*
 * A process has one recipe of each slot at most: in slot 0 that of its tool, the first which
 * recognises it; each recipe that is used beside has a slot of its own.
 */
size_t recipes_slots(const struct recipes *r);
/* What the processes of a slot's recipes are recognised by. */
const struct rules *recipes_rules(const struct recipes *r, size_t slot);
/* Returns the recipe that a rule of these recognises. */
const struct recipe *recipes_of_rule(const struct recipes *r, size_t slot, const struct rule *rule);

#endif
