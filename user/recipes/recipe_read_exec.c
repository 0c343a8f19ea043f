/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_read_exec.c - checkpoints that are programs which the children of a process run. */
#include <stdio.h>
#include <string.h>

#include "recipes/braces.h"
#include "recipes/exec_words.h"
#include "recipes/recipe_reader.h"
#include "recipes/rules_set.h"

/* ---- What the profile says that the item listens to -------------------------------------------
 */

/* "executable: python*, arguments: [a, b]", as far as it fits. */
struct shown {
	char text[RECIPE_TEXT_MAX];
	size_t len;
};

static void add(struct shown *s, const char *text)
{
	if (s->len < sizeof(s->text))
		s->len += (size_t)snprintf(s->text + s->len, sizeof(s->text) - s->len, "%s", text);
}

/* Conditions, or an item of 'any'. */
static void add_conditions(struct shown *s, const struct rule_case *c)
{
	static const char *const keys[RULE_KINDS] = {
		[RULE_EXECUTABLE] = "executable: ",
		[RULE_ARGUMENT] = "arguments: ",
	};

	for (size_t i = 0; i < c->n; i++) {
		const struct condition *condition = &c->conditions[i];

		add(s, i ? ", " : "");
		add(s, keys[condition->kind]);
		add(s, condition->n > 1 ? "[" : "");
		for (size_t k = 0; k < condition->n; k++) {
			add(s, k ? ", " : "");
			add(s, condition->patterns[k].text);
		}
		add(s, condition->n > 1 ? "]" : "");
	}
}

static const char *show(struct recipe_reader *r, const struct rules *programs)
{
	const struct rule_entry *entry = &programs->entries[0];
	struct shown s = {0};

	for (size_t i = 0; i < entry->n; i++) {
		add(&s, i ? "; or " : "");
		add_conditions(&s, &entry->cases[i]);
	}
	return arena_text(r->recipes->arena, s.text, strlen(s.text));
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

static void note(void *context, const char *pattern)
{
	(void)pattern;
	*(bool *)context = true;
}

static bool asks_for(const struct rules *rules, enum rule_kind kind)
{
	bool any = false;

	rules_each_pattern(rules, kind, note, &any);
	return any;
}

int recipe_read_programs(struct recipe_reader *r, struct recipe_item *item,
			 const yaml_node_t *value)
{
	item->programs = rules_new();
	if (!item->programs)
		return nodes_out_of_memory(r->nodes);
	if (nodes_check_mapping(r->nodes, value, "'exec'"))
		return -1;
	if (value->data.mapping.pairs.start == value->data.mapping.pairs.top)
		return nodes_fail(r->nodes, value,
				  "'exec' has no condition: use executable and arguments");
	if (rules_read_match(item->programs, "exec", r->nodes, value))
		return -1;
	for (enum rule_kind kind = RULE_LIBRARY; kind < RULE_KINDS; kind++)
		if (asks_for(item->programs, kind))
			return nodes_fail(r->nodes, value,
					  "a program that begins has nothing mapped, open or "
					  "imported yet: use executable and arguments");
	item->text = show(r, item->programs);
	return item->text ? 0 : nodes_out_of_memory(r->nodes);
}

static int check_text(struct recipe_reader *r, const struct recipe_item *item, const char *text,
		      const yaml_node_t *node)
{
	const char *why = braces_check(text, exec_words_check, NULL);

	(void)item;
	return why ? nodes_fail(r->nodes, node, "'%s': %s", text, why) : 0;
}

int recipe_finish_exec(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node)
{
	if (item->at_return)
		return nodes_fail(r->nodes, node, "'at' is for calls, and this is a program");
	if (item->does != RECIPE_NOTHING && item->does != RECIPE_PHASE && item->does != RECIPE_MARK)
		return nodes_fail(r->nodes, node,
				  "the life of a program is a 'phase'; its beginning may be a "
				  "'mark', and have 'metric' and 'summary'");
	return recipe_check_texts(r, item, check_text, node);
}
