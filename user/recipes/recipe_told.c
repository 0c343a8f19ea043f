/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_told.c - what a file says of the recipes that were used, and what is warned of. */
#include <stdio.h>
#include <unistd.h>

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

/* Why an item never matched; each is said once, of all items that it is true of. */
enum idle {
	BUSY,
	IDLE_UNSEEN,
	IDLE_NOWHERE,
	IDLE_NOT_OWN,
	IDLE_MISSING,
	IDLE_UNFIT,
	IDLE_UNREACHED,
	IDLE_LEFT_OUT,
	IDLE_UNHEARD,
	IDLE_REASONS,
};

static enum idle python_idle(const struct recipe_marker *m, size_t recipe, size_t item)
{
	const struct recipe_use *use = &m->uses[recipe];

	if (!m->starts)
		return IDLE_UNREACHED;
	if (m->python.left_out[recipe])
		return IDLE_LEFT_OUT;
	if (use->found[item]) /* and was not called */
		return BUSY;
	if (use->missing[item])
		return IDLE_MISSING;
	if (use->unfit[item])
		return IDLE_UNFIT;
	/* Without a match, it is of many programs, each of which imports what it needs. */
	return recipes_at(m->recipes, recipe)->matches ? IDLE_UNSEEN : BUSY;
}

/* Its functions were there: a program may import a tool and make no use of it. */
static bool any_found(const struct recipe *recipe, const struct recipe_use *use)
{
	for (size_t i = 0; i < recipe->n_items; i++)
		if (use->found[i])
			return true;
	return false;
}

/* Some items are not of each run. If nothing at all was met, they are named with the rest. */
static enum idle idle_of(const struct recipe_marker *m, size_t at, size_t item)
{
	const struct source *source = m->capture->options->source;
	const struct recipe *recipe = recipes_at(m->recipes, at);
	const struct recipe_use *use = &m->uses[at];

	if (use->matched[item] ||
	    (recipe->items[item].optional && (any_matched(recipe, use) || any_found(recipe, use))))
		return BUSY;
	if (!recipe->asked && source && recipe->items[item].source != RECIPE_PYTHON &&
	    (!source->recipes || recipe_is_place(&recipe->items[item])))
		return source->recipes ? BUSY : IDLE_UNHEARD; /* it knows where these are */
	switch (recipe->items[item].source) {
	case RECIPE_PYTHON:
		return python_idle(m, at, item);
	case RECIPE_SYMBOL:
		if (!from_place_found(m, at, item) && !m->capture->engine && geteuid())
			return IDLE_NOT_OWN;
		/* fallthrough */
	case RECIPE_USDT:
		return from_place_found(m, at, item) ? IDLE_UNSEEN : IDLE_NOWHERE;
	default:
		return IDLE_UNSEEN;
	}
}

static void warn_of_idle(const struct recipe_marker *m, struct capture *c, size_t at,
			 enum idle reason)
{
	static const char *const why_of[] = {
		[IDLE_UNSEEN] = "never seen; the recipe was made for %s",
		[IDLE_NOWHERE] = "no file that the program has mapped has a function or probe of "
				 "that name; the recipe was made for %s",
		[IDLE_NOT_OWN] = "no file of yours that the program has mapped has a function of "
				 "that name, and through a service functions of other files are "
				 "not probed, since that slows all who run them; the recipe was "
				 "made for %s",
		[IDLE_MISSING] = "the module has no such function; the recipe was made for %s",
		[IDLE_UNFIT] = "is there, and is no function that can be wrapped; the recipe was "
			       "made for %s",
		[IDLE_UNREACHED] = "calls of Python are heard only in commands that qprof-bpf "
				   "starts, and not with -p, -a or --python-hooks=none",
		[IDLE_UNHEARD] = "the service was started without recipes, so nobody listens to "
				 "that; say '--recipe NAME' yourself",
		[IDLE_LEFT_OUT] = "left out: all recipes together have too many python items",
	};
	const struct recipe *recipe = recipes_at(m->recipes, at);
	char why[RECIPE_TEXT_MAX * 3];
	size_t len = 0, idle = 0;

	for (size_t i = 0; i < recipe->n_items; i++) {
		if (idle_of(m, at, i) != reason || len >= sizeof(why))
			continue;
		len += (size_t)snprintf(why + len, sizeof(why) - len, "%s'%s'", idle++ ? ", " : "",
					recipe->items[i].text);
	}
	if (idle && len < sizeof(why))
		len += (size_t)snprintf(why + len, sizeof(why) - len, ": ");
	if (idle && len < sizeof(why))
		snprintf(why + len, sizeof(why) - len, why_of[reason],
			 recipe->read_from ? recipe->read_from : "another version");
	if (idle)
		capture_warn(c, recipe->name, why);
}

/* What has not ended, or was killed, or was there before us may have items that nobody could see.
 */
static bool may_be_unseen(const struct recipe *recipe, const struct recipe_use *use)
{
	return !use->whole && (!use->finished || any_matched(recipe, use));
}

static void warn_of_idle_items(const struct recipe_marker *m, struct capture *c, size_t at)
{
	for (enum idle reason = IDLE_UNSEEN; reason < IDLE_REASONS; reason++)
		if (reason != IDLE_UNSEEN ||
		    !may_be_unseen(recipes_at(m->recipes, at), &m->uses[at]))
			warn_of_idle(m, c, at, reason);
}

/* Recipes that were not used, and nobody knows whether they would have been. */
static void warn_of_unusable(const struct recipe_marker *m, struct capture *c)
{
	for (size_t i = 0; i < recipes_count(m->recipes); i++) {
		const struct recipe *recipe = recipes_at(m->recipes, i);

		if (m->uses[i].processes)
			continue;
		if (m->python.left_out[i])
			warn_of_idle(m, c, i, IDLE_LEFT_OUT);
		else if (recipe->asked && !recipe->matches && !m->starts)
			warn_of_idle(m, c, i, IDLE_UNREACHED);
	}
	if (m->python.modules_left_out)
		capture_warn(c, "recipes",
			     "all together match too many modules: not all are known "
			     "to the programs that qprof-bpf starts");
}

/* A recipe that is used beside others is used on many programs that it has nothing to do with. */
static bool is_worth_telling(const struct recipe *recipe, const struct recipe_use *use)
{
	return recipe->beside ? use->too_costly || any_matched(recipe, use) : use->processes;
}

static void tell_item(const struct recipe_item *item, const struct recipe_use *use, size_t at,
		      struct recording_recipe_item *told)
{
	char **const texts[RECIPE_SOURCES] = {
		[RECIPE_LOG] = &told->log,	 [RECIPE_SYMBOL] = &told->symbol,
		[RECIPE_PYTHON] = &told->python, [RECIPE_FILE] = &told->file,
		[RECIPE_EXEC] = &told->exec,	 [RECIPE_USDT] = &told->usdt,
	};

	*told = (struct recording_recipe_item){
		.matched = use->matched[at],
		.limited = use->left_out[at],
		.stopped = use->stopped[at],
	};
	*texts[item->source] = (char *)item->text;
	field_put(&record_recipe_item, told, recipe_source_key(item->source), true);
	field_put(&record_recipe_item, told, "matched", true);
	field_put(&record_recipe_item, told, "limited", told->limited);
	field_put(&record_recipe_item, told, "stopped", told->stopped);
}

static void tell_recipe(struct recipe_marker *m, size_t at, struct recording_recipe *told)
{
	const struct recipe *recipe = recipes_at(m->recipes, at);
	const struct recipe_use *use = &m->uses[at];
	struct recording_recipe_item *items = m->items + at * RECIPE_MAX_ITEMS;

	for (size_t i = 0; i < recipe->n_items; i++)
		tell_item(&recipe->items[i], use, i, &items[i]);
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
		.too_deep_steps = use->too_deep,
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
		if (!recipe->beside)
			warn_of_idle_items(m, c, i);
	}
	warn_of_unusable(m, c);
	return m->told;
}
