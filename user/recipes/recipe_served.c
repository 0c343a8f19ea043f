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

#include "base/clock.h"
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

struct heard_job *recipe_marker_heard_job(const struct recipe_marker *m, uint32_t job)
{
	struct heard_job *heard;

	HASH_FIND(hh, m->heard, &job, sizeof(job), heard);
	return heard;
}

/* Forgets those whose ends were lost, if any were since it was called last. */
static void forget_gone(struct recipe_marker *m)
{
	const uint64_t lost = engine_quality(m->capture->engine).lost_process_events;
	struct recipe_user *user = NULL, *next;

	if (lost == m->lost_events)
		return;
	m->lost_events = lost;
	HASH_ITER (hh, m->users, user, next) {
		if (!engine_tracks(m->capture->engine, user->tgid, user->started_ns))
			recipe_user_forget(m, user);
	}
}

/* Whatever processes do, so many lines and phases are kept at a time. */
static bool has_room(struct recipe_marker *m)
{
	if (HASH_COUNT(m->users) >= WIRE_MAX_LISTENING)
		forget_gone(m);
	if (HASH_COUNT(m->users) < WIRE_MAX_LISTENING)
		return true;
	capture_warn(m->capture, "recipes",
		     "more than 1024 processes at a time: recipes make no phases of the others");
	return false;
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

bool recipe_marker_has_room(struct recipe_marker *m, const struct heard_job *heard)
{
	if (!m->capture->options->engine.audit)
		return true;
	if (!has_room(m))
		return false;
	if (!heard || has_share(m, heard->uid))
		return true;
	capture_warn(
		m->capture, "recipes",
		"a user has as many processes with recipes in runs as are left for all others: "
		"recipes make no phases of the rest");
	return false;
}

bool recipe_user_may_look(struct recipe_marker *m, const struct recipe_user *user)
{
	if (!user->heard || budget_has(&m->looks, user->heard->uid, clock_ns(CLOCK_MONOTONIC)))
		return true;
	capture_warn(m->capture, "recipes",
		     "to look at what processes of a user's runs have mapped took too long: some "
		     "are looked at later, and recipes may know them late");
	return false;
}

void recipe_user_looked(struct recipe_marker *m, const struct recipe_user *user, uint64_t cpu_ns)
{
	if (user->heard)
		budget_spend(&m->looks, user->heard->uid, clock_ns(CLOCK_MONOTONIC), cpu_ns);
}

static void drop(struct recipe_marker *m, struct heard_job *heard)
{
	struct recipe_user *user = NULL, *next;

	HASH_ITER (hh, m->users, user, next) {
		if (user->heard != heard)
			continue;
		if (!recipe_user_uses_any(user)) {
			recipe_user_forget(m, user);
			continue;
		}
		/* What it said and opened for that run is told no more, of its children neither. */
		recipe_user_end(m, user);
		recipe_user_hear(user, NULL);
		recipe_user_begin(m, user);
	}
	HASH_DEL(m->heard, heard);
	free(heard);
}

static void add(struct recipe_marker *m, const struct heard_job *new)
{
	struct heard_job *heard = malloc(sizeof(*heard));

	if (heard) {
		*heard = *new;
		HASH_ADD(hh, m->heard, job, sizeof(heard->job), heard);
	}
	if (heard && heard->hh.tbl)
		return;
	free(heard);
	capture_warn(m->capture, "recipes",
		     "out of memory: a run that is served is not told what its recipes listen to");
}

void recipe_marker_hear(struct marker *marker, struct capture *c, uint32_t job, uint32_t uid,
			const struct source_heard *what)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;
	struct heard_job *heard = recipe_marker_heard_job(m, job);

	m->capture = c;
	if (what && heard)
		heard->what = *what;
	else if (what)
		add(m, &(struct heard_job){.job = job, .uid = uid, .what = *what});
	else if (heard)
		drop(m, heard);
}

/* What it runs is taken to begin now, as in a run that attaches to it. */
void recipe_marker_hear_process(struct marker *marker, uint32_t job, uint32_t tgid,
				uint64_t started_ns)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;
	struct heard_job *heard = recipe_marker_heard_job(m, job);
	struct recipe_user *user = recipe_user_of(m, tgid);

	if (heard && (user || recipe_marker_has_room(m, heard)))
		user = recipe_user_get(m, tgid, started_ns);
	if (!heard || !user)
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
