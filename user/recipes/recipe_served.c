/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recipe_served.c - recipes of runs that are served: what a run asks for, and on the service's side
 * what is told of the processes of its job. What comes of that, the run makes itself.
 *
 * All of a job's processes are listened to as if each had a recipe of its own with these items: set
 * up while it waits for the search of its new code, and kept with its other recipes, those of the
 * audit.
 */
#include <stdlib.h>

#include "capture/capture.h"
#include "recipes/from.h"
#include "recipes/recipe_marker.h"

/* ---- What a run asks for ----------------------------------------------------------------------
 */

void recipe_marker_asks(struct marker *marker, struct source_heard *heard)
{
	const struct recipe_marker *m = (struct recipe_marker *)marker;

	*heard = (struct source_heard){0};
	for (size_t i = 0; i < recipes_count(m->recipes); i++) {
		const struct recipe *recipe = recipes_at(m->recipes, i);

		if (!recipe->asked)
			continue;
		from_log_hear(recipe, heard);
		from_file_hear(recipe, heard);
		heard->told |= from_exec_told_for(recipe);
	}
}

/* ---- What a service tells ---------------------------------------------------------------------
 */

static struct heard_job *find(const struct recipe_marker *m, uint32_t job)
{
	struct heard_job *heard;

	HASH_FIND(hh, m->heard, &job, sizeof(job), heard);
	return heard;
}

/* Nobody has more processes listened to than are left for all others. */
static bool has_share(const struct recipe_marker *m, uint32_t uid)
{
	struct heard_job *heard = NULL, *next;
	size_t own = 0;

	HASH_ITER (hh, m->heard, heard, next) {
		own += heard->uid == uid ? heard->processes : 0;
	}
	return own + HASH_COUNT(m->users) < WIRE_MAX_LISTENING;
}

struct heard_job *recipe_marker_heard_job(struct recipe_marker *m, uint32_t job)
{
	struct heard_job *heard = m->heard && job ? find(m, job) : NULL;

	if (!heard || has_share(m, heard->uid))
		return heard;
	capture_warn(m->capture, "recipes",
		     "a user has as many processes in runs with --recipe as are left for all "
		     "others: the rest is not heard for these runs");
	return NULL;
}

static void drop(struct recipe_marker *m, uint32_t job)
{
	struct heard_job *heard = find(m, job);
	struct recipe_user *user = NULL, *next;

	if (!heard)
		return;
	HASH_ITER (hh, m->users, user, next) {
		if (user->heard != heard)
			continue;
		if (recipe_user_uses_any(user))
			recipe_user_hear(user, NULL);
		else
			recipe_user_forget(m, user);
	}
	HASH_DEL(m->heard, heard);
	free(heard);
}

void recipe_marker_hear(struct marker *marker, struct capture *c, uint32_t job, uint32_t uid,
			const struct source_heard *what)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;
	struct heard_job *heard;

	m->capture = c;
	drop(m, job);
	heard = what ? calloc(1, sizeof(*heard)) : NULL;
	if (heard) {
		*heard = (struct heard_job){.job = job, .uid = uid, .what = *what};
		HASH_ADD(hh, m->heard, job, sizeof(heard->job), heard);
	}
	if (!what || (heard && heard->hh.tbl))
		return;
	free(heard);
	capture_warn(c, "recipes", "out of memory: a run with --recipe is not told what it says");
}

/* What it runs is taken to begin now, as in a run that attaches to it. */
void recipe_marker_hear_process(struct marker *marker, uint32_t job, uint32_t tgid,
				uint64_t started_ns)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;
	struct heard_job *heard = recipe_marker_heard_job(m, job);
	struct recipe_user *user = heard ? recipe_user_get(m, tgid, started_ns) : NULL;

	if (!user)
		return;
	recipe_user_hear(user, heard);
	recipe_user_begin(m, user);
	if (heard->what.told & WIRE_TOLD_CHILDREN)
		from_exec_tell(m, user, WIRE_TOLD_PROGRAMS | WIRE_TOLD_NOW);
}

void recipe_served_free(struct recipe_marker *m)
{
	struct heard_job *heard = NULL, *next;

	HASH_ITER (hh, m->heard, heard, next) {
		HASH_DEL(m->heard, heard);
		free(heard);
	}
}
