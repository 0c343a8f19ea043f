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
	r->rules[1] = rules_new();
	if (r->arena && r->rules[0] && r->rules[1])
		return r;
	recipes_free(r);
	return NULL;
}

void recipes_free(struct recipes *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; k < r->list[i].n_logs; k++)
			line_pattern_free(r->list[i].logs[k].pattern);
	rules_free(r->rules[0]);
	rules_free(r->rules[1]);
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

struct recipe_log *recipes_add_log(struct recipes *r, struct recipe *recipe)
{
	struct recipe_log *logs = arena_grow(r->arena, recipe->logs, recipe->n_logs, sizeof(*logs));

	if (!logs)
		return NULL;
	recipe->logs = logs;
	return &logs[recipe->n_logs++];
}

size_t recipes_count(const struct recipes *r)
{
	return r->n;
}

const struct recipe *recipes_at(const struct recipes *r, size_t i)
{
	return &r->list[i];
}

const struct recipe *recipes_named(const struct recipes *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->list[i].name, name))
			return &r->list[i];
	return NULL;
}

const struct rules *recipes_rules(const struct recipes *r, bool beside)
{
	return r->rules[beside];
}

const struct recipe *recipes_of_rule(const struct recipes *r, bool beside, const struct rule *rule)
{
	return &r->list[r->of_rule[beside][rule->at]];
}
