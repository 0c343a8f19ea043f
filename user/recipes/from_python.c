/* SPDX-License-Identifier: GPL-2.0-only */
/* from_python.c - checkpoints from calls of Python functions, which a hook in the process wraps. */
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "recipes/from.h"

bool from_python_is(const struct recipe_marker *m, const struct wire_checkpoint *cp)
{
	return cp->what == WIRE_METRIC && m->capture &&
	       !strcmp(capture_site_name(m->capture, cp->site), "item");
}

/* ---- Modules ----------------------------------------------------------------------------------
 */

/* Returns true if it is one more. */
static bool keep_module(struct recipe_user *user, const struct wire_checkpoint *said)
{
	char *name;

	if (said->name_state != WIRE_NAME_OK || user->n_modules == PYTHON_MODULES_MAX)
		return false;
	name = strndup(said->name, said->name_len);
	if (!name)
		return false;
	for (size_t i = 0; i < user->n_modules; i++) {
		if (strcmp(user->modules[i], name) != 0)
			continue;
		free(name);
		return false;
	}
	user->modules[user->n_modules++] = name;
	return true;
}

/* It was started with the hooks, and says nothing of its tool before it imports that. */
void from_python_arrived(struct recipe_marker *m, const struct wire_checkpoint *said)
{
	struct recipe_user *user = recipe_user_of(m, said->h.tgid);
	struct heard_job *heard = recipe_marker_heard_job(m, said->h.job);
	struct python_what what;

	if (user && user->unlooked)
		recipe_user_look(m, user);
	if (!python_what_read(said->value, &what) ||
	    (what.said != PYTHON_IMPORTS && what.said != PYTHON_FOUND && what.said != PYTHON_BEGIN))
		return;
	if (user || recipe_marker_has_room(m, heard))
		user = recipe_user_get(m, said->h.tgid, said->h.started_ns);
	if (!user)
		return;
	if (heard)
		recipe_user_hear(user, heard);
	from_exec_tell(m, user, WIRE_TOLD_END); /* the end of its phases, if they are open then */
	if (what.said != PYTHON_IMPORTS || !keep_module(user, said))
		return;
	user->whole = true;
	recipe_user_look(m, user);
}

void from_python_end(struct recipe_user *user)
{
	while (user->n_modules)
		free(user->modules[--user->n_modules]);
}

/* ---- Items ------------------------------------------------------------------------------------
 */

/* Returns the item's recipe; NULL if it is none of ours. */
static const struct recipe *recipe_of(const struct recipe_marker *m, const struct python_what *what)
{
	const struct recipe *recipe;

	if (!m->starts || what->set != m->python.set || what->recipe >= recipes_count(m->recipes))
		return NULL;
	recipe = recipes_at(m->recipes, what->recipe);
	if (what->item >= recipe->n_items || recipe->items[what->item].source != RECIPE_PYTHON)
		return NULL;
	return recipe;
}

static void count(struct recipe_marker *m, const struct wire_checkpoint *said,
		  const struct python_what *what)
{
	const struct recipe *recipe = recipe_of(m, what);
	struct recipe_use *use = recipe ? &m->uses[what->recipe] : NULL;
	struct recipe_user *user;

	if (!use)
		return;
	use->found[what->item] |= what->said == PYTHON_FOUND;
	use->missing[what->item] |= what->said == PYTHON_MISSING;
	use->unfit[what->item] |= what->said == PYTHON_UNFIT;
	if (!what->counts)
		return;
	use->matched[what->item]++;
	user = recipe_user_get(m, said->h.tgid, said->h.started_ns);
	if (user)
		recipe_user_meets(m, user, recipe);
}

static enum wire_what checkpoint_of(enum python_said said)
{
	switch (said) {
	case PYTHON_BEGIN:
		return WIRE_BEGIN;
	case PYTHON_END:
		return WIRE_END;
	case PYTHON_MARK:
		return WIRE_MARK;
	default:
		return 0;
	}
}

/* It ends with what the process runs, if not before. */
static void note_phase(struct recipe_marker *m, const struct wire_checkpoint *cp,
		       enum python_said said)
{
	struct recipe_user *user = recipe_user_get(m, cp->h.tgid, cp->h.started_ns);
	char name[MARK_NAME_MAX] = {0};

	memcpy(name, cp->name, cp->name_len);
	if (user && said == PYTHON_BEGIN)
		begun_add(&user->begun, cp->h.tid, name);
	else if (user && said == PYTHON_END)
		begun_end(&user->begun, cp->h.tid, name);
}

/* What it says becomes a checkpoint of its thread, as if it had hit begin, end or mark itself. */
int from_python_said(struct recipe_marker *m, const struct wire_checkpoint *said,
		     marker_feed_fn feed, void *context)
{
	struct {
		struct wire_checkpoint cp;
		char name[WIRE_NAME_MAX];
	} record;
	struct python_what what;

	if (!python_what_read(said->value, &what))
		return feed(context, &said->h);
	count(m, said, &what);
	if (!checkpoint_of(what.said))
		return feed(context, &said->h);
	memcpy(&record, said, sizeof(*said) + said->name_len);
	record.cp.h.size = sizeof(record);
	record.cp.what = checkpoint_of(what.said);
	record.cp.site = WIRE_SITE_NONE;
	record.cp.value_state = WIRE_VALUE_NONE;
	record.cp.value = 0;
	note_phase(m, &record.cp, what.said);
	return feed(context, &record.cp.h);
}
