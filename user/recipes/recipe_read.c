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

#include "format/nodes.h"
#include "kernel/digest.h"
#include "recipes/recipe_reader.h"
#include "recipes/rules_set.h"

static int fail_twice(const struct recipe_reader *r, const yaml_node_t *key)
{
	return nodes_fail(r->nodes, key, "'%s' is here twice: leave one", nodes_show(key).text);
}

int recipe_read_text(struct recipe_reader *r, const yaml_node_t *key, const yaml_node_t *node,
		     size_t max, const char **to)
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

/* How items of each source are checked once their keys are read. */
static int (*const finish[RECIPE_SOURCES])(struct recipe_reader *r, struct recipe_item *item,
					   const yaml_node_t *node) = {
	[RECIPE_LOG] = recipe_finish_log,	[RECIPE_SYMBOL] = recipe_finish_symbol,
	[RECIPE_PYTHON] = recipe_finish_python, [RECIPE_FILE] = recipe_finish_file,
	[RECIPE_EXEC] = recipe_finish_exec,	[RECIPE_USDT] = recipe_finish_usdt,
};

static enum recipe_does deed_of(const yaml_node_t *key)
{
	for (size_t i = 0; i < sizeof(deeds) / sizeof(*deeds); i++)
		if (nodes_is_key(key, deeds[i].key))
			return deeds[i].does;
	return RECIPE_NOTHING;
}

static int read_values(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *map,
		       bool summary)
{
	if (nodes_check_mapping(r->nodes, map, summary ? "'summary'" : "'metric'"))
		return -1;
	nodes_each_pair (pair, map) {
		const yaml_node_t *key = nodes_at(r->nodes, pair->key);
		struct recipe_value *value = &item->values[item->n_values];

		if (item->n_values == RECIPE_MAX_VALUES)
			return nodes_fail(r->nodes, key, "more than %d metrics of a line",
					  RECIPE_MAX_VALUES);
		if (nodes_check_text(r->nodes, key, "the name of a metric", RECIPE_TEXT_MAX))
			return -1;
		value->summary = summary;
		value->name =
			arena_text(r->recipes->arena, nodes_text(key), key->data.scalar.length);
		if (!value->name)
			return nodes_out_of_memory(r->nodes);
		if (recipe_read_text(r, key, nodes_at(r->nodes, pair->value), RECIPE_TEXT_MAX,
				     &value->value))
			return -1;
		item->n_values++;
	}
	return 0;
}

static int read_progress(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *map)
{
	if (nodes_check_mapping(r->nodes, map, "'progress'"))
		return -1;
	nodes_each_pair (pair, map) {
		const yaml_node_t *key = nodes_at(r->nodes, pair->key);
		const char **to = nodes_is_key(key, "name")   ? &item->name
				  : nodes_is_key(key, "step") ? &item->step
				  : nodes_is_key(key, "of")   ? &item->of
							      : NULL;

		if (!to)
			return nodes_fail(r->nodes, key,
					  "'%s' is no key of 'progress': use name, step and of",
					  nodes_show(key).text);
		if (recipe_read_text(r, key, nodes_at(r->nodes, pair->value), RECIPE_TEXT_MAX, to))
			return -1;
	}
	if (item->name && item->step && item->of)
		return 0;
	return nodes_fail(r->nodes, map, "'progress' needs name, step and of");
}

/* Returns RECIPE_SOURCES if the key begins no item. */
static enum recipe_source source_of(const yaml_node_t *key)
{
	enum recipe_source source = 0;

	while (source < RECIPE_SOURCES && !nodes_is_key(key, recipe_source_key(source)))
		source++;
	return source;
}

static int read_source(struct recipe_reader *r, struct recipe_item *item, enum recipe_source source,
		       const yaml_node_t *key, const yaml_node_t *value)
{
	if (item->text && item->source != source)
		return nodes_fail(r->nodes, key,
				  "an item listens to one thing, and '%s' is here: make two items "
				  "of it",
				  recipe_source_key(item->source));
	item->source = source;
	if (source == RECIPE_FILE)
		return item->text ? fail_twice(r, key) : recipe_read_names(r, item, key, value);
	if (source == RECIPE_EXEC)
		return item->text ? fail_twice(r, key) : recipe_read_programs(r, item, value);
	return recipe_read_text(r, key, value, RECIPE_TEXT_MAX, &item->text);
}

static int read_deed(struct recipe_reader *r, struct recipe_item *item, enum recipe_does does,
		     const yaml_node_t *key, const yaml_node_t *value)
{
	if (does == RECIPE_NOTHING)
		return nodes_fail(r->nodes, key,
				  "'%s' is no key of a checkpoint: use log, literal, children, "
				  "symbol, python, file, exec, usdt, at, name, phase, begin, end, "
				  "mark, progress, metric, summary or optional",
				  nodes_show(key).text);
	if (item->does != RECIPE_NOTHING)
		return nodes_fail(r->nodes, key,
				  "a line does one of phase, begin, end, mark and progress: make "
				  "two items of it");
	item->does = does;
	if (does == RECIPE_PROGRESS)
		return read_progress(r, item, value);
	return recipe_read_text(r, key, value, RECIPE_TEXT_MAX, &item->name);
}

static int read_yes_or_no(const struct recipe_reader *r, const yaml_node_t *key,
			  const yaml_node_t *value, bool *to)
{
	const int yes = nodes_yes_or_no(value);

	*to = yes > 0;
	return yes < 0 ? nodes_fail(r->nodes, value, "'%s' is to be yes or no", nodes_text(key))
		       : 0;
}

static int read_at(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *key,
		   const yaml_node_t *value)
{
	if (item->at_return)
		return fail_twice(r, key);
	if (!nodes_is_key(value, "return"))
		return nodes_fail(r->nodes, value,
				  "'at' is to be return: without it, it is the call");
	item->at_return = true;
	return 0;
}

static int read_item_key(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *key,
			 const yaml_node_t *value)
{
	const enum recipe_source source = source_of(key);

	if (source != RECIPE_SOURCES)
		return read_source(r, item, source, key, value);
	if (nodes_is_key(key, "optional"))
		return read_yes_or_no(r, key, value, &item->optional);
	if (nodes_is_key(key, "name"))
		return recipe_read_name(r, item, key, value);
	if (nodes_is_key(key, "literal"))
		return recipe_read_text(r, key, value, RECIPE_LITERAL_MAX, &item->literal);
	if (nodes_is_key(key, "children"))
		return read_yes_or_no(r, key, value, &item->children);
	if (nodes_is_key(key, "at"))
		return read_at(r, item, key, value);
	if (nodes_is_key(key, "metric") || nodes_is_key(key, "summary"))
		return read_values(r, item, value, nodes_is_key(key, "summary"));
	return read_deed(r, item, deed_of(key), key, value);
}

int recipe_check_texts(struct recipe_reader *r, const struct recipe_item *item,
		       recipe_check_fn check, const yaml_node_t *node)
{
	const char *const texts[] = {item->name, item->step, item->of};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i] && check(r, item, texts[i], node))
			return -1;
	for (size_t i = 0; i < item->n_values; i++)
		if (check(r, item, item->values[i].name, node) ||
		    check(r, item, item->values[i].value, node))
			return -1;
	return 0;
}

static int finish_item(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node)
{
	if (!item->text)
		return nodes_fail(r->nodes, node,
				  "a checkpoint that listens to nothing: add log, symbol, python, "
				  "file, exec or usdt");
	if (item->source != RECIPE_SYMBOL && item->source != RECIPE_USDT &&
	    item->does == RECIPE_NOTHING && !item->n_values)
		return nodes_fail(r->nodes, node,
				  "nothing to do when it is met: add phase, begin, end, mark, "
				  "progress, metric or summary");
	if (item->children && item->source != RECIPE_LOG)
		return nodes_fail(r->nodes, node, "'children' is for items of a log");
	return finish[item->source](r, item, node);
}

static int read_item(struct recipe_reader *r, const yaml_node_t *node)
{
	struct recipe_item *item;

	if (nodes_check_mapping(r->nodes, node, "a checkpoint"))
		return -1;
	if (r->recipe->n_items == RECIPE_MAX_ITEMS)
		return nodes_fail(r->nodes, node, "more than %d checkpoints", RECIPE_MAX_ITEMS);
	item = recipes_add_item(r->recipes, r->recipe);
	if (!item)
		return nodes_out_of_memory(r->nodes);
	nodes_each_pair (pair, node)
		if (read_item_key(r, item, nodes_at(r->nodes, pair->key),
				  nodes_at(r->nodes, pair->value)))
			return -1;
	return finish_item(r, item, node);
}

static int read_items(struct recipe_reader *r, const yaml_node_t *key, const yaml_node_t *list)
{
	if (r->recipe->n_items)
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

static int read_line_end(const struct recipe_reader *r, const yaml_node_t *value)
{
	const char *text = value->type == YAML_SCALAR_NODE ? nodes_text(value) : "";

	if (strlen(text) != 1 || *text < ' ')
		return nodes_fail(r->nodes, value, "'line_end' is to be one ASCII character");
	r->recipe->line_end = *text;
	return 0;
}

static int read_recipe_key(struct recipe_reader *r, const yaml_node_t **match,
			   const yaml_node_t *key, const yaml_node_t *value)
{
	if (nodes_is_key(key, "name"))
		return recipe_read_text(r, key, value, RECIPE_NAME_MAX - 1, &r->recipe->name);
	if (nodes_is_key(key, "read_from"))
		return recipe_read_text(r, key, value, RECIPE_TEXT_MAX, &r->recipe->read_from);
	if (nodes_is_key(key, "checkpoints"))
		return read_items(r, key, value);
	if (nodes_is_key(key, "beside"))
		return read_yes_or_no(r, key, value, &r->recipe->beside);
	if (nodes_is_key(key, "until_marked"))
		return read_yes_or_no(r, key, value, &r->recipe->until_marked);
	if (nodes_is_key(key, "line_end"))
		return read_line_end(r, value);
	if (!nodes_is_key(key, "match"))
		return nodes_fail(r->nodes, key,
				  "'%s' is no key of a recipe: use name, read_from, match, beside, "
				  "line_end and checkpoints",
				  nodes_show(key).text);
	if (*match)
		return fail_twice(r, key);
	*match = value;
	return 0;
}

/* Returns the rules of the recipe's slot, which recognise it; NULL after the error. */
static struct rules *rules_for(struct recipe_reader *r, const yaml_node_t *match)
{
	struct recipes *set = r->recipes;
	const size_t recipe = (size_t)(r->recipe - set->list);

	if (!r->recipe->beside) {
		set->of_tool[rules_count(set->rules[0])] = recipe;
		return set->rules[0];
	}
	if (set->n_slots == RECIPE_SLOTS) {
		nodes_fail(r->nodes, match, "more than %d recipes with 'beside: yes'",
			   RECIPE_SLOTS - 1);
		return NULL;
	}
	set->rules[set->n_slots] = rules_new();
	if (!set->rules[set->n_slots]) {
		nodes_out_of_memory(r->nodes);
		return NULL;
	}
	set->of_slot[set->n_slots] = recipe;
	return set->rules[set->n_slots++];
}

static int read_match(struct recipe_reader *r, const yaml_node_t *match)
{
	struct rules *rules = rules_for(r, match);

	return rules ? rules_read_match(rules, r->recipe->name, r->nodes, match) : -1;
}

/* Functions of Python are found wherever they are imported. */
static bool finds_its_processes(const struct recipe *recipe)
{
	for (size_t i = 0; i < recipe->n_items; i++)
		if (recipe->items[i].source != RECIPE_PYTHON)
			return false;
	return recipe->n_items;
}

static void digest_text(uint64_t *digest, const char *text)
{
	digest_bytes(digest, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* A service and a run that it serves know items by their numbers, and may have other recipes
 * besides. */
static uint32_t number_of(const struct recipe *recipe)
{
	uint64_t digest = digest_of_nothing;

	digest_text(&digest, recipe->name);
	for (size_t i = 0; i < recipe->n_items; i++) {
		const struct recipe_item *item = &recipe->items[i];

		digest_bytes(&digest, &item->source, sizeof(item->source));
		digest_bytes(&digest, &item->does, sizeof(item->does));
		digest_text(&digest, item->text);
		digest_text(&digest, item->name);
	}
	return (uint32_t)(digest >> 32) % RECIPE_NUMBERS;
}

/* Of two recipes of one number, which is most unlikely, the hits of the first would be taken for
 * those of both. */
static bool has_number_of_its_own(const struct recipes *recipes, const struct recipe *recipe)
{
	for (size_t i = 0; i < recipes->n; i++)
		if (&recipes->list[i] != recipe && recipes->list[i].number == recipe->number)
			return false;
	return true;
}

static int read_recipe(void *context, const yaml_node_t *root)
{
	struct recipe_reader *r = context;
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
	if (!match && !finds_its_processes(r->recipe))
		return nodes_fail(r->nodes, root,
				  "the recipe '%s' matches nothing: add 'match: ...'",
				  r->recipe->name);
	if (!r->recipe->n_items)
		return nodes_fail(r->nodes, root, "the recipe '%s' has no checkpoints",
				  r->recipe->name);
	r->recipe->matches = match;
	if (recipes_named(r->recipes, r->recipe->name) != r->recipe) {
		recipes_take_back(r->recipes); /* the first of a name counts */
		return 0;
	}
	r->recipe->number = number_of(r->recipe);
	if (!has_number_of_its_own(r->recipes, r->recipe))
		return nodes_fail(r->nodes, root,
				  "the recipe '%s' has the number of another, by chance: give it "
				  "another name",
				  r->recipe->name);
	return match ? read_match(r, match) : 0;
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
	struct recipe_reader r = {.nodes = &nodes, .recipes = recipes};

	return nodes_parse(&nodes, text, len, read_recipe, &r);
}

int recipes_read(struct recipes *recipes, const char *path, struct error *err)
{
	struct nodes nodes = recipe_nodes(path, err);
	struct recipe_reader r = {.nodes = &nodes, .recipes = recipes};

	return nodes_read_file(&nodes, read_recipe, &r);
}

int recipes_each_file(const char *directory,
		      int (*each)(void *context, const char *path, struct error *err),
		      void *context, struct error *err)
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
		code = each(context, files.gl_pathv[i], err);
	globfree(&files);
	return code;
}

static int read_one(void *context, const char *path, struct error *err)
{
	return recipes_read(context, path, err);
}

int recipes_read_all(struct recipes *recipes, const char *directory, struct error *err)
{
	return recipes_each_file(directory, read_one, recipes, err);
}
