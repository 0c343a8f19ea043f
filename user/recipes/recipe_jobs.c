/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_jobs.c - recipes in an audit: which processes of jobs use them. */
#include <string.h>

#include "base/log.h"
#include "capture/capture.h"
#include "recipes/from.h"
#include "recipes/recipe_marker.h"

/* Looks at processes of runs that are served: at most so long at once, and a part of the time
 * later.
 */
#define LOOKS_NS 500000000ull
enum { LOOKS_SHARE = 20 };

/* What it runs now is nobody's yet: recipe_marker_meet() comes when the record is fed. */
static void executed(struct recipe_marker *m, uint32_t tgid)
{
	struct recipe_user *user = recipe_user_of(m, tgid);

	if (!user)
		return;
	recipe_user_end(m, user);
	recipe_user_hear(user, NULL);
	memset(user->recipes, 0, sizeof(user->recipes));
	user->changed = true;
}

/*
 * A process of a job that is served waits until its new code is searched: what listens to it is set
 * up meanwhile, as in a run. Its hooks of Python know the recipes of that run.
 */
static void arrived_of_served(struct recipe_marker *m, const struct wire_header *h)
{
	const struct wire_checkpoint *cp = (const struct wire_checkpoint *)h;

	if (h->kind == WIRE_EXEC)
		recipe_user_executed(m, (const struct wire_process *)h);
	else if (h->kind == WIRE_MAPPED)
		recipe_user_mapped(m, h);
	else if (h->kind == WIRE_CHECKPOINT && from_python_is(m, cp))
		from_python_arrived(m, cp);
}

static void arrived(struct marker *marker, struct capture *c, const struct wire_header *h)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;

	m->capture = c;
	if (h->kind == WIRE_FORK)
		recipe_user_forked(m, (const struct wire_process *)h);
	else if (h->job && engine_serves(c->engine, h->job))
		arrived_of_served(m, h);
	else if (h->kind == WIRE_EXEC)
		executed(m, h->tgid);
}

struct marker *recipe_marker_of_jobs(struct recipes *recipes)
{
	struct marker *marker = recipe_marker_new(recipes);

	struct recipe_marker *m = (struct recipe_marker *)marker;

	if (!marker)
		return NULL;
	marker->arrived = arrived;
	m->looks = (struct budget){.most = LOOKS_NS, .share = LOOKS_SHARE};
	return marker;
}

bool recipe_marker_wants(struct marker *marker, const struct profile_process *process)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;
	const struct recipe_user *user = recipe_user_of(m, process->tgid);

	return rules_count(recipes_rules(m->recipes, TOOL_SLOT)) &&
	       !(user && user->started_ns == process->started_ns && user->recipes[TOOL_SLOT]);
}

void recipe_marker_found(struct marker *marker, const struct profile_process *process)
{
	from_exec_was_there((struct recipe_marker *)marker, process);
}

void recipe_marker_leave(struct marker *marker, const struct machine *machine,
			 const struct machine_job *job)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;
	struct recipe_user *user = NULL, *next;

	HASH_ITER (hh, m->users, user, next) {
		const struct profile_process *process = machine_process(machine, user->tgid);

		/* The root is ending, too: its record comes next. */
		if (process && process != job->root && process->started_ns == user->started_ns &&
		    machine_job_of(process) == job)
			recipe_user_forget(m, user);
	}
}

/* Looks into each slot that is free. Returns true if that found a recipe. */
static bool find_recipes(struct recipe_marker *m, const struct profile_process *process,
			 const struct wire_process *exec, const struct recipe **recipes)
{
	const struct look_matches to = recipe_marker_matches(m, recipes, m->n_slots);
	bool found = false, cut;

	if (!exec && (!to.n || !look_at_process(&to, process, true, &cut)))
		return false;
	for (size_t slot = 0; slot < m->n_slots; slot++) {
		struct rules_match *match = m->match[slot];

		if (recipes[slot])
			continue;
		recipes[slot] = recipe_found(
			m, slot, exec ? look_at_exec(match, exec) : rules_match_verdict(match));
		found |= recipes[slot] != NULL;
	}
	return found;
}

static bool any_of(const struct recipe *const *recipes)
{
	for (size_t slot = 0; slot < RECIPE_SLOTS; slot++)
		if (recipes[slot])
			return true;
	return false;
}

void recipe_marker_meet(struct marker *marker, const struct profile_process *process,
			const struct wire_process *exec)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;
	struct recipe_user *user = recipe_user_of(m, process->tgid);
	const struct recipe *recipes[RECIPE_SLOTS] = {0}, *from_parent[RECIPE_SLOTS] = {0};

	/* It was as it arrived, and so was perhaps what it has executed since. */
	if (user && exec && user->started_ns == process->started_ns &&
	    user->executed_ns >= exec->h.time_ns)
		return;
	if (user && user->started_ns == process->started_ns)
		memcpy(from_parent, user->from_parent, sizeof(from_parent));
	if (user &&
	    (exec || user->started_ns != process->started_ns)) { /* it was another program */
		recipe_user_forget(m, user);
		user = NULL;
	}
	for (size_t slot = 0; user && slot < m->n_slots; slot++)
		recipes[slot] = user->inherits[slot] ? NULL : user->recipes[slot];
	if (!find_recipes(m, process, exec, recipes) && !any_of(from_parent))
		return;
	if (!user && !recipe_marker_has_room(m, NULL))
		return;
	user = recipe_user_get(m, process->tgid, process->started_ns);
	if (!user)
		return;
	memcpy(user->from_parent, from_parent, sizeof(from_parent));
	for (size_t slot = 0; slot < m->n_slots; slot++)
		recipe_user_choose(user, slot, recipes[slot]);
	user->whole |= exec != NULL;
	recipe_user_begin(m, user);
	for (size_t slot = 0; slot < m->n_slots; slot++)
		if (recipes[slot])
			log_verbose("process %u: recipe %s", process->tgid, recipes[slot]->name);
}
