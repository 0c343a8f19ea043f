/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "recipes/recipe_set.h"

struct recipes *recipes_new(void)
{
	struct recipes *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->arena = arena_new();
	r->rules[0] = rules_new();
	r->n_slots = 1;
	if (r->arena && r->rules[0])
		return r;
	recipes_free(r);
	return NULL;
}

void recipes_take_back(struct recipes *r)
{
	const struct recipe *recipe = &r->list[--r->n];

	for (size_t i = 0; i < recipe->n_items; i++) {
		line_pattern_free(recipe->items[i].pattern);
		rules_free(recipe->items[i].programs);
	}
}

void recipes_free(struct recipes *r)
{
	if (!r)
		return;
	while (r->n)
		recipes_take_back(r);
	for (size_t slot = 0; slot < r->n_slots; slot++)
		rules_free(r->rules[slot]);
	arena_free(r->arena);
	free(r);
}

struct recipe *recipes_add(struct recipes *r)
{
	struct recipe *list = arena_grow(r->arena, r->list, r->n, sizeof(*list));

	if (!list)
		return NULL;
	r->list = list;
	return &list[r->n++];
}

struct recipe_item *recipes_add_item(struct recipes *r, struct recipe *recipe)
{
	struct recipe_item *items =
		arena_grow(r->arena, recipe->items, recipe->n_items, sizeof(*items));

	if (!items)
		return NULL;
	recipe->items = items;
	return &items[recipe->n_items++];
}

size_t recipes_count(const struct recipes *r)
{
	return r->n;
}

const struct recipe *recipes_at(const struct recipes *r, size_t i)
{
	return &r->list[i];
}

void recipes_mark_asked(struct recipes *r)
{
	for (size_t i = 0; i < r->n; i++)
		r->list[i].asked = true;
}

const struct recipe *recipes_named(const struct recipes *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->list[i].name, name))
			return &r->list[i];
	return NULL;
}

uint32_t recipe_item_number(const struct recipe *recipe, size_t item)
{
	return recipe->number * RECIPE_MAX_ITEMS + (uint32_t)item;
}

const struct recipe *recipes_of_item(const struct recipes *r, uint32_t number, size_t *item)
{
	*item = number % RECIPE_MAX_ITEMS;
	for (size_t i = 0; i < r->n; i++)
		if (r->list[i].number == number / RECIPE_MAX_ITEMS)
			return *item < r->list[i].n_items ? &r->list[i] : NULL;
	return NULL;
}

bool recipe_has(const struct recipe *recipe, enum recipe_source source)
{
	for (size_t i = 0; i < recipe->n_items; i++)
		if (recipe->items[i].source == source)
			return true;
	return false;
}

bool recipe_is_place(const struct recipe_item *item)
{
	return item->source == RECIPE_SYMBOL || item->source == RECIPE_USDT;
}

const char *recipe_source_key(enum recipe_source source)
{
	static const char *const keys[RECIPE_SOURCES] = {
		[RECIPE_LOG] = "log",	[RECIPE_SYMBOL] = "symbol", [RECIPE_PYTHON] = "python",
		[RECIPE_FILE] = "file", [RECIPE_EXEC] = "exec",	    [RECIPE_USDT] = "usdt",
	};

	return keys[source];
}

size_t recipes_slots(const struct recipes *r)
{
	return r->n_slots;
}

const struct rules *recipes_rules(const struct recipes *r, size_t slot)
{
	return r->rules[slot];
}

const struct recipe *recipes_of_rule(const struct recipes *r, size_t slot, const struct rule *rule)
{
	return &r->list[slot ? r->of_slot[slot] : r->of_tool[rule->at]];
}
