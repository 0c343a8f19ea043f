/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_read_place.c - checkpoints that are calls of functions, or hits of USDT probes. */
#include <stdio.h>
#include <string.h>

#include "recipes/braces.h"
#include "recipes/recipe_reader.h"

static int use_text(struct recipe_reader *r, struct recipe_item *item, const char *text)
{
	item->does = RECIPE_PHASE;
	item->name = arena_text(r->recipes->arena, text, strlen(text));
	return item->name ? 0 : nodes_out_of_memory(r->nodes);
}

/* {arg: 1, type: string} is the text "{arg1:string}". */
static int read_argument(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *map)
{
	const char *arg = NULL, *type = NULL;
	char text[2 * RECIPE_NAME_MAX];

	nodes_each_pair (pair, map) {
		const yaml_node_t *key = nodes_at(r->nodes, pair->key);
		const char **to = nodes_is_key(key, "arg")    ? &arg
				  : nodes_is_key(key, "type") ? &type
							      : NULL;

		if (!to)
			return nodes_fail(r->nodes, key,
					  "'%s' is no key of 'name': use arg and type",
					  nodes_show(key).text);
		if (recipe_read_text(r, key, nodes_at(r->nodes, pair->value), RECIPE_NAME_MAX, to))
			return -1;
	}
	if (!arg || !type)
		return nodes_fail(r->nodes, map,
				  "'name' needs arg and type: {arg: 1, type: string}");
	snprintf(text, sizeof(text), "{arg%s:%s}", arg, type);
	return use_text(r, item, text);
}

int recipe_read_name(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *key,
		     const yaml_node_t *value)
{
	if (item->does != RECIPE_NOTHING)
		return nodes_fail(r->nodes, key,
				  "'name' names a phase, and the item says already what it does: "
				  "leave one");
	if (value->type == YAML_MAPPING_NODE)
		return read_argument(r, item, value);
	item->does = RECIPE_PHASE;
	return recipe_read_text(r, key, value, RECIPE_TEXT_MAX, &item->name);
}

struct checking {
	struct recipe_args *args;
	bool function;
};

static const char *check_word(void *context, const char *word, size_t len)
{
	const struct checking *c = context;

	return args_add(c->args, c->function, word, len);
}

static int check_text(struct recipe_reader *r, const struct recipe_item *item, const char *text,
		      const yaml_node_t *node)
{
	/* The item is the set's own. */
	struct checking c = {(struct recipe_args *)&item->args, item->source == RECIPE_SYMBOL};
	const char *why = braces_check(text, check_word, &c);

	return why ? nodes_fail(r->nodes, node, "'%s': %s", text, why) : 0;
}

static int finish(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node)
{
	if (item->literal)
		return nodes_fail(r->nodes, node, "'literal' is for items of a log");
	return recipe_check_texts(r, item, check_text, node);
}

int recipe_finish_symbol(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node)
{
	if (item->does == RECIPE_NOTHING && !item->n_values && use_text(r, item, "{function}"))
		return -1;
	return finish(r, item, node);
}

int recipe_finish_usdt(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node)
{
	if (!strchr(item->text, ':'))
		return nodes_fail(r->nodes, node,
				  "'usdt' is PROVIDER:NAME, and may have * and ?: 'python:gc__*'");
	if (item->does == RECIPE_NOTHING && !item->n_values) {
		if (use_text(r, item, "{probe}"))
			return -1;
		item->does = RECIPE_MARK;
	}
	return finish(r, item, node);
}
