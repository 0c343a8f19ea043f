/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads a recipe from a YAML document. Anything unknown, repeated or empty, a pattern that does not
 * compile and a $N without its group is an error, before anything runs.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/nodes.h"
#include "recipes/recipe_set.h"
#include "recipes/rules_set.h"

struct reader {
	struct nodes *nodes;
	struct recipes *recipes;
	struct recipe *recipe;
};

static int fail_twice(const struct reader *r, const yaml_node_t *key)
{
	return nodes_fail(r->nodes, key, "'%s' is here twice: leave one", nodes_show(key).text);
}

/* Copies a text of 1 to max bytes; *to is NULL before, or the key is here twice. */
static int read_text(struct reader *r, const yaml_node_t *key, const yaml_node_t *node, size_t max,
		     const char **to)
{
	char what[NODES_SHOWN + 2];

	if (*to)
		return fail_twice(r, key);
	snprintf(what, sizeof(what), "'%s'", nodes_text(key));
	if (nodes_check_text(r->nodes, node, what, max))
		return -1;
	*to = arena_text(r->recipes->arena, nodes_text(node), node->data.scalar.length);
	return *to ? 0 : nodes_out_of_memory(r->nodes);
}

/* ---- Items ------------------------------------------------------------------------------------
 */

static const struct {
	const char *key;
	enum recipe_does does;
} deeds[] = {
	{"phase", RECIPE_PHASE}, {"begin", RECIPE_BEGIN},	{"end", RECIPE_END},
	{"mark", RECIPE_MARK},	 {"progress", RECIPE_PROGRESS},
};

static enum recipe_does deed_of(const yaml_node_t *key)
{
	for (size_t i = 0; i < sizeof(deeds) / sizeof(*deeds); i++)
		if (nodes_is_key(key, deeds[i].key))
			return deeds[i].does;
	return RECIPE_NOTHING;
}

static int read_values(struct reader *r, struct recipe_log *log, const yaml_node_t *map,
		       bool summary)
{
	if (nodes_check_mapping(r->nodes, map, summary ? "'summary'" : "'metric'"))
		return -1;
	nodes_each_pair (pair, map) {
		const yaml_node_t *key = nodes_at(r->nodes, pair->key);
		struct recipe_value *value = &log->values[log->n_values];

		if (log->n_values == RECIPE_MAX_VALUES)
			return nodes_fail(r->nodes, key, "more than %d metrics of a line",
					  RECIPE_MAX_VALUES);
		if (nodes_check_text(r->nodes, key, "the name of a metric", RECIPE_TEXT_MAX))
			return -1;
		value->summary = summary;
		value->name =
			arena_text(r->recipes->arena, nodes_text(key), key->data.scalar.length);
		if (!value->name)
			return nodes_out_of_memory(r->nodes);
		if (read_text(r, key, nodes_at(r->nodes, pair->value), RECIPE_TEXT_MAX,
			      &value->value))
			return -1;
		log->n_values++;
	}
	return 0;
}

static int read_progress(struct reader *r, struct recipe_log *log, const yaml_node_t *map)
{
	if (nodes_check_mapping(r->nodes, map, "'progress'"))
		return -1;
	nodes_each_pair (pair, map) {
		const yaml_node_t *key = nodes_at(r->nodes, pair->key);
		const char **to = nodes_is_key(key, "name")   ? &log->name
				  : nodes_is_key(key, "step") ? &log->step
				  : nodes_is_key(key, "of")   ? &log->of
							      : NULL;

		if (!to)
			return nodes_fail(r->nodes, key,
					  "'%s' is no key of 'progress': use name, step and of",
					  nodes_show(key).text);
		if (read_text(r, key, nodes_at(r->nodes, pair->value), RECIPE_TEXT_MAX, to))
			return -1;
	}
	if (log->name && log->step && log->of)
		return 0;
	return nodes_fail(r->nodes, map, "'progress' needs name, step and of");
}

static int read_item_key(struct reader *r, struct recipe_log *log, const yaml_node_t *key,
			 const yaml_node_t *value)
{
	const enum recipe_does does = deed_of(key);

	if (nodes_is_key(key, "log"))
		return read_text(r, key, value, RECIPE_TEXT_MAX, &log->text);
	if (nodes_is_key(key, "literal"))
		return read_text(r, key, value, RECIPE_LITERAL_MAX, &log->literal);
	if (nodes_is_key(key, "metric") || nodes_is_key(key, "summary"))
		return read_values(r, log, value, nodes_is_key(key, "summary"));
	if (does == RECIPE_NOTHING)
		return nodes_fail(r->nodes, key,
				  "'%s' is no key of a checkpoint: use log, literal, phase, begin, "
				  "end, mark, progress, metric or summary",
				  nodes_show(key).text);
	if (log->does != RECIPE_NOTHING)
		return nodes_fail(r->nodes, key,
				  "a line does one of phase, begin, end, mark and progress: make "
				  "two items of it");
	log->does = does;
	if (does == RECIPE_PROGRESS)
		return read_progress(r, log, value);
	return read_text(r, key, value, RECIPE_TEXT_MAX, &log->name);
}

/* Checks that each $N of a text has its group. */
static int check_groups(const struct reader *r, const struct recipe_log *log, const char *text,
			const yaml_node_t *node)
{
	for (const char *at = strchr(text, '$'); at; at = strchr(at + 1, '$')) {
		char *end;
		const unsigned long group = strtoul(at + 1, &end, 10);

		if (at[1] == '$') {
			at++;
			continue;
		}
		if (at[1] < '0' || at[1] > '9')
			return nodes_fail(
				r->nodes, node,
				"'$' without a number: $1 is the first group, $$ a dollar");
		if (group > line_pattern_groups(log->pattern))
			return nodes_fail(
				r->nodes, node, "$%.*s is not there: the pattern has %zu group(s)",
				(int)(end - at - 1), at + 1, line_pattern_groups(log->pattern));
	}
	return 0;
}

static int finish_item(struct reader *r, struct recipe_log *log, const yaml_node_t *node)
{
	struct error why = {0};

	if (!log->text)
		return nodes_fail(r->nodes, node, "a checkpoint without 'log'");
	if (log->does == RECIPE_NOTHING && !log->n_values)
		return nodes_fail(r->nodes, node,
				  "nothing to do with such a line: add phase, begin, end, mark, "
				  "progress, metric or summary");
	log->pattern = line_pattern_new(log->text, &why);
	if (!log->pattern)
		return nodes_fail(r->nodes, node, "the pattern cannot be used: %s", why.text);
	if ((log->name && check_groups(r, log, log->name, node)) ||
	    (log->step && check_groups(r, log, log->step, node)) ||
	    (log->of && check_groups(r, log, log->of, node)))
		return -1;
	for (size_t i = 0; i < log->n_values; i++)
		if (check_groups(r, log, log->values[i].name, node) ||
		    check_groups(r, log, log->values[i].value, node))
			return -1;
	return 0;
}

static int read_item(struct reader *r, const yaml_node_t *node)
{
	struct recipe_log *log;

	if (nodes_check_mapping(r->nodes, node, "a checkpoint"))
		return -1;
	if (r->recipe->n_logs == RECIPE_MAX_ITEMS)
		return nodes_fail(r->nodes, node, "more than %d checkpoints", RECIPE_MAX_ITEMS);
	log = recipes_add_log(r->recipes, r->recipe);
	if (!log)
		return nodes_out_of_memory(r->nodes);
	nodes_each_pair (pair, node)
		if (read_item_key(r, log, nodes_at(r->nodes, pair->key),
				  nodes_at(r->nodes, pair->value)))
			return -1;
	return finish_item(r, log, node);
}

static int read_items(struct reader *r, const yaml_node_t *key, const yaml_node_t *list)
{
	if (r->recipe->n_logs)
		return fail_twice(r, key);
	if (!nodes_is_list(list) || !nodes_length(list))
		return nodes_fail(r->nodes, list, "'checkpoints' is to be a list of items");
	nodes_each_item (item, list)
		if (read_item(r, nodes_at(r->nodes, *item)))
			return -1;
	return 0;
}

/* ---- Recipes ----------------------------------------------------------------------------------
 */

static int read_recipe_key(struct reader *r, const yaml_node_t **match, const yaml_node_t *key,
			   const yaml_node_t *value)
{
	if (nodes_is_key(key, "name"))
		return read_text(r, key, value, RECIPE_NAME_MAX - 1, &r->recipe->name);
	if (nodes_is_key(key, "read_from"))
		return read_text(r, key, value, RECIPE_TEXT_MAX, &r->recipe->read_from);
	if (nodes_is_key(key, "checkpoints"))
		return read_items(r, key, value);
	if (nodes_is_key(key, "beside")) {
		const int yes = nodes_yes_or_no(value);

		r->recipe->beside = yes > 0;
		return yes < 0 ? nodes_fail(r->nodes, value, "'beside' is to be yes or no") : 0;
	}
	if (!nodes_is_key(key, "match"))
		return nodes_fail(r->nodes, key,
				  "'%s' is no key of a recipe: use name, read_from, match, beside "
				  "and checkpoints",
				  nodes_show(key).text);
	if (*match)
		return fail_twice(r, key);
	*match = value;
	return 0;
}

static int read_match(struct reader *r, const yaml_node_t *match)
{
	struct recipes *set = r->recipes;
	struct rules *rules = set->rules[r->recipe->beside];

	set->of_rule[r->recipe->beside][rules_count(rules)] = (size_t)(r->recipe - set->list);
	return rules_read_match(rules, r->recipe->name, r->nodes, match);
}

static int read_recipe(void *context, const yaml_node_t *root)
{
	struct reader *r = context;
	const yaml_node_t *match = NULL;

	if (nodes_check_mapping(r->nodes, root, "a recipe"))
		return -1;
	if (r->recipes->n == RECIPES_MAX)
		return nodes_fail(r->nodes, root, "more than %d recipes", RECIPES_MAX);
	r->recipe = recipes_add(r->recipes);
	if (!r->recipe)
		return nodes_out_of_memory(r->nodes);
	nodes_each_pair (pair, root)
		if (read_recipe_key(r, &match, nodes_at(r->nodes, pair->key),
				    nodes_at(r->nodes, pair->value)))
			return -1;
	if (!r->recipe->name)
		return nodes_fail(r->nodes, root, "a recipe without a name: add 'name: ...'");
	if (!match)
		return nodes_fail(r->nodes, root,
				  "the recipe '%s' matches nothing: add 'match: ...'",
				  r->recipe->name);
	if (!r->recipe->n_logs)
		return nodes_fail(r->nodes, root, "the recipe '%s' has no checkpoints",
				  r->recipe->name);
	return read_match(r, match);
}

static struct nodes recipe_nodes(const char *name, struct error *err)
{
	return (struct nodes){
		.what = "recipe",
		.nothing = "there is no recipe: begin with 'name:'",
		.name = name,
		.err = err,
	};
}

int recipes_parse(struct recipes *recipes, const char *name, const char *text, size_t len,
		  struct error *err)
{
	struct nodes nodes = recipe_nodes(name, err);
	struct reader r = {.nodes = &nodes, .recipes = recipes};

	return nodes_parse(&nodes, text, len, read_recipe, &r);
}

int recipes_read(struct recipes *recipes, const char *path, struct error *err)
{
	struct nodes nodes = recipe_nodes(path, err);
	struct reader r = {.nodes = &nodes, .recipes = recipes};

	return nodes_read_file(&nodes, read_recipe, &r);
}

int recipes_read_all(struct recipes *recipes, const char *directory, struct error *err)
{
	char pattern[4096];
	glob_t files;
	int code;

	if ((size_t)snprintf(pattern, sizeof(pattern), "%s/*.yaml", directory) >= sizeof(pattern))
		return error_set(err, "cannot read the recipes in '%s': the name is too long",
				 directory);
	code = glob(pattern, 0, NULL, &files);
	if (code == GLOB_NOMATCH)
		return 0;
	if (code)
		return error_set(err, "cannot read the recipes in '%s': %s", directory,
				 code == GLOB_NOSPACE ? "out of memory" : strerror(errno));
	for (size_t i = 0; !code && i < files.gl_pathc; i++)
		code = recipes_read(recipes, files.gl_pathv[i], err);
	globfree(&files);
	return code;
}
