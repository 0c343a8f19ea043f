/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_told.c - what a file says of the recipes that were used, and what is warned of. */
#include <stdio.h>

#include "capture/capture.h"
#include "format/fields.h"
#include "recipes/from.h"

static bool any_matched(const struct recipe *recipe, const struct recipe_use *use)
{
	for (size_t i = 0; i < recipe->n_items; i++)
		if (use->matched[i])
			return true;
	return false;
}

/* Some items are not of each run. If nothing at all was met, they are named with the rest. */
static void warn_of_idle_items(struct capture *c, const struct recipe *recipe,
			       const struct recipe_use *use)
{
	const bool any = any_matched(recipe, use);
	char why[RECIPE_TEXT_MAX * 3];
	size_t len = 0, idle = 0;

	for (size_t i = 0; i < recipe->n_items; i++) {
		if (use->matched[i] || (any && recipe->items[i].optional) || len >= sizeof(why))
			continue;
		len += (size_t)snprintf(why + len, sizeof(why) - len, "%s'%s'", idle++ ? ", " : "",
					recipe->items[i].text);
	}
	if (idle && len < sizeof(why))
		snprintf(why + len, sizeof(why) - len, ": never seen; the recipe was made for %s",
			 recipe->read_from ? recipe->read_from : "another version");
	if (idle)
		capture_warn(c, recipe->name, why);
}

/* What has not ended, or was killed, or was there before us may have items that nobody could see.
 */
static bool may_warn(const struct recipe *recipe, const struct recipe_use *use)
{
	return !recipe->beside && (use->whole || (use->finished && !any_matched(recipe, use)));
}

/* A recipe that is used beside others is used on many programs that it has nothing to do with. */
static bool is_worth_telling(const struct recipe *recipe, const struct recipe_use *use)
{
	return recipe->beside ? use->too_costly || any_matched(recipe, use) : use->processes;
}

static void tell_item(const struct recipe_item *item, uint64_t matched,
		      struct recording_recipe_item *told)
{
	char **const texts[RECIPE_SOURCES] = {
		[RECIPE_LOG] = &told->log,
	};

	*told = (struct recording_recipe_item){.matched = matched};
	*texts[item->source] = (char *)item->text;
	field_put(&record_recipe_item, told, recipe_source_key(item->source), true);
	field_put(&record_recipe_item, told, "matched", true);
}

static void tell_recipe(struct recipe_marker *m, size_t at, struct recording_recipe *told)
{
	const struct recipe *recipe = recipes_at(m->recipes, at);
	const struct recipe_use *use = &m->uses[at];
	struct recording_recipe_item *items = m->items + at * RECIPE_MAX_ITEMS;

	for (size_t i = 0; i < recipe->n_items; i++)
		tell_item(&recipe->items[i], use->matched[i], &items[i]);
	*told = (struct recording_recipe){
		.has = field_all(&record_recipe),
		.name = (char *)recipe->name,
		.read_from = (char *)recipe->read_from,
		.processes = use->processes,
		.items = items,
		.n_items = recipe->n_items,
		.buffered_lines = use->buffered,
		.cut_lines = use->cut_lines,
		.cut_texts = use->cut_texts,
		.limited_texts = use->limited,
		.costly_lines = use->too_costly,
		.undrawn_steps = use->undrawn,
	};
	field_put(&record_recipe, told, "read_from", recipe->read_from);
}

const struct recording_recipe *recipe_marker_tell(struct recipe_marker *m, struct capture *c,
						  size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < recipes_count(m->recipes); i++) {
		const struct recipe *recipe = recipes_at(m->recipes, i);

		if (!is_worth_telling(recipe, &m->uses[i]))
			continue;
		tell_recipe(m, i, &m->told[(*n)++]);
		if (may_warn(recipe, &m->uses[i]))
			warn_of_idle_items(c, recipe, &m->uses[i]);
	}
	return m->told;
}
