/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_set.h - a set of recipes, which recipe_read.c builds. */
#ifndef QPROF_RECIPE_SET_H
#define QPROF_RECIPE_SET_H

#include "base/arena.h"
#include "recipes/recipe.h"

struct recipes {
	struct arena *arena;		/* of all that follows but the patterns */
	struct rules *rules[2];		/* of tools; of what is used beside them */
	size_t of_rule[2][RECIPES_MAX]; /* the recipe of each rule */
	struct recipe *list;
	size_t n;
};

/* Each appends one. Returns NULL when out of memory; valid until the next one of its kind. */
struct recipe *recipes_add(struct recipes *r);
struct recipe_log *recipes_add_log(struct recipes *r, struct recipe *recipe);

#endif
