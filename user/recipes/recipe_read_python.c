/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recipe_read_python.c - checkpoints that are calls of Python functions.
 *
 * What the texts mean is the hook's to find out, in the process that has the function: here only
 * their form is checked. The hook gets them in lines of the environment, so none has a line break.
 */
#include <ctype.h>
#include <string.h>

#include "recipes/braces.h"
#include "recipes/recipe_reader.h"

static bool is_line(const char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			return false;
	return true;
}

static bool is_in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

static size_t name_length(const char *at, const char *end)
{
	const char *from = at;

	while (at < end && is_in_name(*at))
		at++;
	return (size_t)(at - from);
}

/* An argument, by name or place, and then attributes and indices: "layer.name", "0[1]",
 * "names[k]". */
static const char *check_word(void *context, const char *word, size_t len)
{
	static const char why[] = "{layer} is an argument, {0} the first, {layer.name} and "
				  "{layers[0]} what is in it";
	const char *const end = word + len, *at = word + name_length(word, end);

	(void)context;
	if (at == word)
		return why;
	while (at < end) {
		const bool index = *at == '[';
		const size_t n = name_length(at + 1, end);

		if ((!index && *at != '.') || !n)
			return why;
		at += 1 + n;
		if (index && (at == end || *at++ != ']'))
			return why;
	}
	return NULL;
}

static int check_text(struct recipe_reader *r, const struct recipe_item *item, const char *text,
		      const yaml_node_t *node)
{
	const char *why = is_line(text) ? braces_check(text, check_word, NULL)
					: "a text with a control character";

	(void)item;
	return why ? nodes_fail(r->nodes, node, "%s", why) : 0;
}

/* Where functions are: "MODULES:NAMES". */
static int check_place(struct recipe_reader *r, const char *text, const yaml_node_t *node)
{
	const char *colon = strchr(text, ':');
	size_t stars = 0;

	for (const char *at = text; *at; at++)
		stars += *at == '*';
	if (!colon || colon == text || !colon[1] || strchr(colon + 1, ':') || strchr(text, ' ') ||
	    !is_line(text))
		return nodes_fail(r->nodes, node,
				  "'python' is to be 'MODULE:FUNCTION' or 'MODULE:CLASS.METHOD'");
	if (stars > RULES_MAX_STARS)
		return nodes_fail(r->nodes, node, "more than %d '*'", RULES_MAX_STARS);
	return 0;
}

int recipe_finish_python(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node)
{
	if (item->literal)
		return nodes_fail(r->nodes, node, "'literal' is for a log, and this is a call");
	if (item->does == RECIPE_PROGRESS)
		return nodes_fail(r->nodes, node, "'progress' is for a log, and this is a call");
	if (item->does == RECIPE_PHASE && item->at_return)
		return nodes_fail(r->nodes, node,
				  "the phase of a call ends as it returns: use begin with 'at: "
				  "return'");
	if (check_place(r, item->text, node))
		return -1;
	return recipe_check_texts(r, item, check_text, node);
}
