/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_read_file.c - checkpoints that are files which a process reads or writes. */
#include <stdio.h>
#include <string.h>

#include "recipes/braces.h"
#include "recipes/from_file.h"
#include "recipes/recipe_reader.h"

static int add_pattern(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node)
{
	struct wire_name_part part;
	const char **names;

	if (nodes_check_text(r->nodes, node, "a name of files", RULES_PATTERN_MAX))
		return -1;
	if (strchr(nodes_text(node), '/'))
		return nodes_fail(r->nodes, node,
				  "'%s' has a '/': a file is known by its name alone",
				  nodes_show(node).text);
	if (!from_file_part(nodes_text(node), &part))
		return nodes_fail(r->nodes, node,
				  "'%s' would be every file: add what all names have",
				  nodes_show(node).text);
	names = arena_grow(r->recipes->arena, (void *)item->names, item->n_names, sizeof(*names));
	if (!names)
		return nodes_out_of_memory(r->nodes);
	item->names = names;
	names[item->n_names] =
		arena_text(r->recipes->arena, nodes_text(node), node->data.scalar.length);
	return names[item->n_names++] ? 0 : nodes_out_of_memory(r->nodes);
}

/* What the profile says that the item listens to: "*.gguf, *.safetensors". */
static const char *join(struct recipe_reader *r, const struct recipe_item *item)
{
	char text[RECIPE_TEXT_MAX * 2];
	size_t len = 0;

	for (size_t i = 0; i < item->n_names && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? ", " : "",
					item->names[i]);
	return arena_text(r->recipes->arena, text, len < sizeof(text) ? len : sizeof(text) - 1);
}

int recipe_read_names(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *key,
		      const yaml_node_t *value)
{
	if (nodes_is_text(value)) {
		if (add_pattern(r, item, value))
			return -1;
	} else if (!nodes_is_list(value) || !nodes_length(value)) {
		return nodes_fail(r->nodes, key,
				  "'file' is to be a name of files or a list of them");
	} else {
		nodes_each_item (name, value)
			if (add_pattern(r, item, nodes_at(r->nodes, *name)))
				return -1;
	}
	item->text = join(r, item);
	return item->text ? 0 : nodes_out_of_memory(r->nodes);
}

static const char *check_word(void *context, const char *word, size_t len)
{
	(void)context;
	return from_file_word(word, len) ? NULL
					 : "a word that no file has: use {read|write} and "
					   "{basename}, and {{ for a brace";
}

int recipe_finish_file(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node)
{
	const char *why;

	if ((item->does != RECIPE_PHASE && item->does != RECIPE_MARK) || item->n_values)
		return nodes_fail(r->nodes, node, "a file is a 'phase' or a 'mark', and no more");
	why = braces_check(item->name, check_word, NULL);
	return why ? nodes_fail(r->nodes, node, "'%s': %s", item->name, why) : 0;
}
