/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/python_items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the hook is to know -----------------------------------------------------------------
 */

struct writing {
	FILE *out;
	struct python_items *items;
};

/* Takes back what was written since `before` if that is too much. */
static bool fits(const struct writing *w, long before)
{
	if (ftell(w->out) < PYTHON_ITEMS_MAX - 32) /* a line comes before all others */
		return true;
	fseek(w->out, before, SEEK_SET);
	return false;
}

static void write_module(void *context, const char *pattern)
{
	struct writing *w = context;
	const long before = ftell(w->out);

	if (strpbrk(pattern, "\t\n")) /* no module is called so */
		return;
	fprintf(w->out, "m\t%s\n", pattern);
	w->items->modules_left_out |= !fits(w, before);
}

static void write_item(FILE *out, size_t recipe, size_t at, const struct recipe_item *item)
{
	static const char *const does[] = {
		[RECIPE_NOTHING] = "none", [RECIPE_PHASE] = "phase", [RECIPE_BEGIN] = "begin",
		[RECIPE_END] = "end",	   [RECIPE_MARK] = "mark",
	};

	fprintf(out, "i\t%zu\t%zu\t%s%s\t%s\t%s", recipe, at, does[item->does],
		item->at_return ? "@" : "", item->text, item->name ? item->name : "");
	for (size_t i = 0; i < item->n_values; i++)
		fprintf(out, "\t%s\t%s\t%s", item->values[i].summary ? "s" : "m",
			item->values[i].name, item->values[i].value);
	fputc('\n', out);
}

/* All items of a recipe, or none. */
static void write_items(struct writing *w, const struct recipes *recipes, size_t at)
{
	const struct recipe *recipe = recipes_at(recipes, at);
	const long before = ftell(w->out);

	for (size_t i = 0; i < recipe->n_items; i++)
		if (recipe->items[i].source == RECIPE_PYTHON)
			write_item(w->out, at, i, &recipe->items[i]);
	w->items->left_out[at] = !fits(w, before);
}

/* FNV-1a, of 31 bits: the number is signed on its way. */
uint32_t python_items_number(const char *lines)
{
	uint32_t hash = 2166136261u;

	for (; *lines; lines++)
		hash = (hash ^ (unsigned char)*lines) * 16777619u;
	return hash >> 1;
}

static int write_lines(struct python_items *items, const struct recipes *recipes, FILE *out)
{
	struct writing w = {.out = out, .items = items};

	for (size_t slot = 0; slot < recipes_slots(recipes); slot++)
		rules_each_pattern(recipes_rules(recipes, slot), RULE_MODULE, write_module, &w);
	for (size_t i = 0; i < recipes_count(recipes); i++)
		write_items(&w, recipes, i);
	/* What was taken back may be longer than what came after it. */
	fputc('\0', out);
	return ferror(out) ? -1 : 0;
}

int python_items_write(struct python_items *items, const struct recipes *recipes)
{
	char *lines = NULL;
	size_t size;
	FILE *out = open_memstream(&lines, &size);
	int code = -1;

	memset(items, 0, sizeof(*items));
	if (out) {
		code = write_lines(items, recipes, out);
		if (fclose(out))
			code = -1;
	}
	if (!code && *lines) {
		items->set = python_items_number(lines);
		code = asprintf(&items->text, "1\t%u\n%s", items->set, lines) < 0 ? -1 : 0;
		if (code)
			items->text = NULL;
	}
	free(lines);
	return code;
}

void python_items_free(struct python_items *items)
{
	free(items->text);
	memset(items, 0, sizeof(*items));
}

/* ---- What it says -----------------------------------------------------------------------------
 */

bool python_what_read(uint64_t value, struct python_what *what)
{
	*what = (struct python_what){
		.said = value & 0x7f,
		.counts = value & 0x80,
		.item = value >> 8 & 0xff,
		.recipe = value >> 16 & 0xffff,
		.set = (uint32_t)(value >> 32),
	};
	return what->said <= PYTHON_MET;
}
