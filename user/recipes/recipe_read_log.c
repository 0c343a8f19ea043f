/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_read_log.c - checkpoints that are lines of a log. */
#include <stdlib.h>
#include <string.h>

#include "recipes/recipe_reader.h"

/* Each $N has its group. */
static int check_groups(struct recipe_reader *r, const struct recipe_item *item, const char *text,
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
		if (group > line_pattern_groups(item->pattern))
			return nodes_fail(
				r->nodes, node, "$%.*s is not there: the pattern has %zu group(s)",
				(int)(end - at - 1), at + 1, line_pattern_groups(item->pattern));
	}
	return 0;
}

int recipe_finish_log(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node)
{
	struct error why = {0};

	if (item->at_return)
		return nodes_fail(r->nodes, node, "'at' is for calls, and this is a log");
	item->pattern = line_pattern_new(item->text, &why);
	if (!item->pattern)
		return nodes_fail(r->nodes, node, "the pattern cannot be used: %s", why.text);
	return recipe_check_texts(r, item, check_groups, node);
}
