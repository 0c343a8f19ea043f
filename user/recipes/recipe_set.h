/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_set.h - a set of recipes, which recipe_read.c builds. */
#ifndef QPROF_RECIPE_SET_H
#define QPROF_RECIPE_SET_H

#include "base/arena.h"
#include "recipes/recipe.h"

struct recipes {
	struct arena *arena;		   /* of all that follows but the patterns */
	struct rules *rules[RECIPE_SLOTS]; /* of tools; of each that is used beside them */
	size_t n_slots;			   /* 1 at least: that of tools */
	size_t of_tool[RECIPES_MAX];	   /* the recipe of each rule of slot 0 */
	size_t of_slot[RECIPE_SLOTS];	   /* the recipe of each other slot */
	struct recipe *list;
	size_t n;
};

/* Each appends one. Returns NULL when out of memory; valid until the next one of its kind. */
struct recipe *recipes_add(struct recipes *r);
struct recipe_item *recipes_add_item(struct recipes *r, struct recipe *recipe);
/* Frees the one that was added last. */
void recipes_take_back(struct recipes *r);

#endif
