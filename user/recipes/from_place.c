/* SPDX-License-Identifier: GPL-2.0-only */
/* from_place.c - checkpoints from functions that a process calls, and USDT probes that it hits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "recipes/braces.h"
#include "recipes/from.h"
#include "recipes/recipe_marker.h"

static bool ends_at_return(const struct recipe_item *item)
{
	return item->source == RECIPE_SYMBOL && item->does == RECIPE_PHASE;
}

/* ---- What the kernel side listens to ----------------------------------------------------------
 */

static size_t index_of(const struct recipe_marker *m, const struct recipe *recipe)
{
	return (size_t)(recipe - recipes_at(m->recipes, 0));
}

static struct wish wish_of(const struct recipe *recipe, size_t at)
{
	const struct recipe_item *item = &recipe->items[at];
	struct wish wish = {
		.item = recipe_item_number(recipe, at),
		.function = item->source == RECIPE_SYMBOL,
		.returns = ends_at_return(item),
		.pattern = item->text,
		.args = item->args.used,
	};

	for (size_t i = 0; i < WIRE_HIT_TEXTS; i++)
		wish.texts[i] = i < item->args.n_texts ? item->args.texts[i] : WIRE_HIT_ARGS;
	return wish;
}

/* Returns the places of a recipe; NULL if it has none, or there is no memory. */
static struct wish_list *wishes_of_recipe(struct recipe_marker *m, const struct recipe *recipe)
{
	const size_t at = index_of(m, recipe);
	struct wish_list *list = &m->wishes[at];

	for (size_t i = 0; !list->wishes && i < recipe->n_items; i++)
		if (recipe_is_place(&recipe->items[i]))
			list->wishes = calloc(recipe->n_items, sizeof(*list->wishes));
	if (!list->wishes || list->n)
		return list->n ? list : NULL;
	for (size_t i = 0; i < recipe->n_items; i++)
		if (recipe_is_place(&recipe->items[i]))
			list->wishes[list->n++] = wish_of(recipe, i);
	return list;
}

/* Only logs are heard of children, too. */
static const struct recipe *recipe_of(const struct recipe_user *user, size_t slot)
{
	return user->inherits[slot] ? NULL : user->recipes[slot];
}

static int use_list(struct item_source *source, const struct recipe_user *user,
		    const struct wish_list *list)
{
	int err = 0;

	for (size_t i = 0; i < list->n && !err; i++)
		err = item_source_use(source, user->tgid, list->wishes[i].item, user->started_ns);
	return err;
}

void from_place_begin(struct recipe_marker *m, struct capture *c, const struct recipe_user *user)
{
	struct wish_list *lists[RECIPE_SLOTS];
	struct item_source *source;
	struct error why = {0};
	size_t n = 0;
	int err = 0;

	for (size_t slot = 0; slot < m->n_slots; slot++) {
		const struct recipe *recipe = recipe_of(user, slot);

		lists[n] = recipe ? wishes_of_recipe(m, recipe) : NULL;
		n += lists[n] != NULL;
	}
	if (!n || m->placeless)
		return;
	source = engine_items(c->engine, &why);
	m->placeless = !source;
	if (!source) {
		capture_warn(c, "recipes", why.text);
		return;
	}
	for (size_t i = 0; i < n && !err; i++)
		err = use_list(source, user, lists[i]);
	if (!discovery_wish(c->discovery, user->tgid, lists, n) || err)
		capture_warn(c, "recipes",
			     "more programs with functions or probes in recipes than "
			     "can be watched at a time");
	/* In an audit a process may have been searched before it is recognised. (One of a served
	 * job that has just executed its program is searched next.) */
	if (c->options->engine.audit && !user->changed)
		discovery_search_changed(c->discovery, user->tgid, user->started_ns,
					 DISCOVERY_OF_WATCHED);
}

void from_place_end(struct recipe_marker *m, struct capture *c, const struct recipe_user *user)
{
	struct error why = {0};

	for (size_t slot = 0; slot < m->n_slots && !m->placeless; slot++) {
		const struct recipe *recipe = recipe_of(user, slot);
		const struct wish_list *list = recipe ? wishes_of_recipe(m, recipe) : NULL;
		struct item_source *source = list ? engine_items(c->engine, &why) : NULL;

		for (size_t i = 0; source && i < list->n; i++) {
			const uint32_t item = list->wishes[i].item;

			m->uses[index_of(m, recipe)].left_out[item % RECIPE_MAX_ITEMS] +=
				item_source_leave(source, user->tgid, item);
		}
		if (source)
			discovery_wish(c->discovery, user->tgid, NULL, 0);
	}
}

size_t recipe_marker_places(struct marker *marker, struct wish *wishes)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;
	size_t n = 0;

	for (size_t i = 0; i < recipes_count(m->recipes); i++) {
		const struct recipe *recipe = recipes_at(m->recipes, i);
		const struct wish_list *list = recipe->asked ? wishes_of_recipe(m, recipe) : NULL;

		if (list && wishes)
			memcpy(wishes + n, list->wishes, list->n * sizeof(*wishes));
		n += list ? list->n : 0;
	}
	return n;
}

/* A service has found them. */
void from_place_take_account(struct recipe_marker *m, const struct source_account *account)
{
	for (uint32_t i = 0; i < account->n_places; i++) {
		const struct source_place *place = &account->places[i];
		size_t item;
		const struct recipe *recipe = recipes_of_item(m->recipes, place->item, &item);
		struct wish_list *list;

		if (!recipe)
			continue;
		recipe_use_of(m, recipe)->left_out[item] += place->limited;
		list = &m->wishes[index_of(m, recipe)];
		for (size_t k = 0; k < list->n; k++)
			if (list->wishes[k].item == place->item)
				list->wishes[k].places = place->found;
	}
}

uint64_t from_place_found(const struct recipe_marker *m, size_t recipe, size_t item)
{
	const struct wish_list *list = &m->wishes[recipe];

	for (size_t i = 0; i < list->n; i++)
		if (list->wishes[i].item % RECIPE_MAX_ITEMS == item)
			return list->wishes[i].places;
	return 0;
}

void from_place_free(struct recipe_marker *m)
{
	for (size_t i = 0; i < recipes_count(m->recipes); i++)
		free(m->wishes[i].wishes);
}

/* ---- What it tells ----------------------------------------------------------------------------
 */

static void fill_in(const void *context, const char *text, char out[MARK_NAME_MAX])
{
	braces_fill(text, args_fill, context, out, MARK_NAME_MAX);
}

/* A place that a process has come by. */
struct coming_by {
	struct recipe_user *user;
	struct teller *teller;
	size_t item; /* of the recipe */
	struct args_met met;
	struct call_place at;
	const struct recipe_tell *tell;
};

static struct teller *teller_of(const struct recipe_marker *m, const struct recipe_user *user,
				const struct recipe *recipe)
{
	for (size_t slot = 0; slot < m->n_slots; slot++)
		if (user->tellers[slot] && teller_recipe(user->tellers[slot]) == recipe)
			return user->tellers[slot];
	return NULL;
}

static int end_left(const struct coming_by *by)
{
	char name[MARK_NAME_MAX];

	while (calls_take_left(&by->user->calls, &by->at, name))
		if (teller_leave(name, by->tell))
			return -1;
	return 0;
}

static int call_begins(const struct coming_by *by)
{
	const struct recipe_words words = {.fill = fill_in, .context = &by->met};
	char *name;

	if (end_left(by))
		return -1;
	name = calls_begin(&by->user->calls, &by->at);
	if (name)
		return teller_enter(by->teller, by->item, &words, by->tell, name);
	teller_use(by->teller)->left_out[by->item]++;
	return 0;
}

static int call_returns(const struct coming_by *by)
{
	char name[MARK_NAME_MAX];
	bool last = false;

	while (!last && calls_take(&by->user->calls, &by->at, name, &last))
		if (teller_leave(name, by->tell))
			return -1;
	return 0;
}

/* Its probes are gone. Calls that have not returned may last, but nobody is told when they end. */
static int stopped(const struct coming_by *by, struct recipe_marker *m)
{
	char why[2 * USDT_NAME_LEN + 256], name[MARK_NAME_MAX];

	snprintf(why, sizeof(why),
		 "'%s' was met more than 10,000 times in each of two seconds: its probes were "
		 "removed, since they slow the program, and what comes later is in no count",
		 by->met.name);
	capture_warn(m->capture, teller_recipe(by->teller)->name, why);
	teller_use(by->teller)->stopped[by->item]++;
	while (calls_take_at(&by->user->calls, by->at.site, name))
		if (teller_lose(name, by->tell))
			return -1;
	return 0;
}

static int place_met(const struct coming_by *by, bool returns)
{
	const struct recipe_item *item = &teller_recipe(by->teller)->items[by->item];
	const struct recipe_words words = {.fill = fill_in, .context = &by->met};

	if (returns)
		return call_returns(by);
	if (ends_at_return(item))
		return call_begins(by);
	return teller_act(by->teller, by->item, &words, by->tell);
}

int from_place_hit(struct recipe_marker *m, const struct wire_checkpoint *cp, struct marking *to)
{
	const struct recipe_tell tell = {marking_mark, to};
	struct recipe_user *user = recipe_user_of(m, cp->h.tgid);
	struct wire_hit hit;
	const struct recipe *recipe;
	struct coming_by by;
	size_t item;

	if (!user || user->started_ns != cp->h.started_ns || cp->name_len != sizeof(hit))
		return 0;
	memcpy(&hit, cp->name, sizeof(hit));
	recipe = recipes_of_item(m->recipes, hit.item, &item);
	if (!recipe)
		return 0;
	by = (struct coming_by){
		.user = user,
		.teller = teller_of(m, user, recipe),
		.item = item,
		.at = {cp->h.tid, hit.item, hit.stack, cp->site},
		.tell = &tell,
	};
	if (!by.teller)
		return 0;
	by.met = (struct args_met){&recipe->items[by.item].args, &hit,
				   capture_site_name(m->capture, cp->site)};
	to->of_thread = true;
	to->begun = &user->begun;
	if (cp->what == WIRE_TOO_OFTEN)
		return stopped(&by, m);
	return place_met(&by, cp->what == WIRE_RETURN);
}
