/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * from_exec.c - checkpoints from programs that the descendants of a process run: the life of each
 * is a phase of the process that runs it.
 *
 * Example: the recipe of a script (100) has such an item. 100 forks 101, which executes
 * convert.py, which forks 102: both are known from their forks on, with the recipe whose items they
 * may meet. What 101 executes is held against these items when the kernel side tells, with a
 * snapshot, that it begins.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "capture/capture.h"
#include "kernel/procfs_aside.h"
#include "recipes/braces.h"
#include "recipes/exec_words.h"
#include "recipes/from.h"
#include "recipes/rules_look.h"

struct descendant {
	uint32_t tgid;
	uint64_t started_ns;
	uint64_t of[RECIPES_MAX / 64]; /* the recipes of the processes that it descends from */
	struct wire_process *exec;     /* what it runs, until its begin is told; NULL: not known */
	bool told;		       /* the kernel side knows */
	struct begun begun;
	UT_hash_handle hh;
};

/* ---- Who is known -----------------------------------------------------------------------------
 */

static struct descendant *find(const struct recipe_marker *m, uint32_t tgid)
{
	struct descendant *d;

	HASH_FIND(hh, m->descendants, &tgid, sizeof(tgid), d);
	return d;
}

static struct descendant *find_same(const struct recipe_marker *m, const struct wire_header *h)
{
	struct descendant *d = find(m, h->tgid);

	return d && d->started_ns == h->started_ns ? d : NULL;
}

static void forget(struct recipe_marker *m, struct descendant *d)
{
	HASH_DEL(m->descendants, d);
	begun_free(&d->begun);
	free(d->exec);
	free(d);
}

void from_exec_free(struct recipe_marker *m)
{
	struct descendant *d = NULL, *next;

	HASH_ITER (hh, m->descendants, d, next) {
		forget(m, d);
	}
}

/* Adds the recipes whose items are for the children of a process. Returns true if there are any. */
static bool recipes_for_children(const struct recipe_marker *m, uint32_t parent, uint64_t of[])
{
	const struct recipe_user *user = recipe_user_of((struct recipe_marker *)m, parent);
	const struct descendant *d = find(m, parent);
	bool any = false;

	for (size_t slot = 0; user && slot < m->n_slots; slot++) {
		const struct teller *teller = user->tellers[slot];
		size_t at;

		if (!teller || teller_is_child(teller) ||
		    !recipe_has(teller_recipe(teller), RECIPE_EXEC))
			continue;
		at = (size_t)(teller_recipe(teller) - recipes_at(m->recipes, 0));
		of[at / 64] |= UINT64_C(1) << at % 64;
		any = true;
	}
	for (size_t i = 0; d && i < RECIPES_MAX / 64; i++) {
		of[i] |= d->of[i];
		any |= d->of[i] != 0;
	}
	return any;
}

/* Returns the process if it descends from one whose recipe has programs; else, or when out of
 * memory, NULL. */
static struct descendant *find_or_add(struct recipe_marker *m, uint32_t tgid, uint64_t started_ns,
				      uint32_t parent)
{
	uint64_t of[RECIPES_MAX / 64] = {0};
	struct descendant *d = find(m, tgid);

	if (d && d->started_ns == started_ns)
		return d;
	if (d)
		forget(m, d); /* its exit was lost */
	d = recipes_for_children(m, parent, of) ? calloc(1, sizeof(*d)) : NULL;
	if (!d)
		return NULL;
	d->tgid = tgid;
	d->started_ns = started_ns;
	memcpy(d->of, of, sizeof(of));
	HASH_ADD(hh, m->descendants, tgid, sizeof(d->tgid), d);
	if (d->hh.tbl)
		return d;
	free(d);
	return NULL;
}

static void keep_exec(struct descendant *d, const struct wire_process *exec)
{
	const size_t size = sizeof(*exec) + exec->cmdline_len;

	free(d->exec);
	d->exec = malloc(size);
	if (d->exec)
		memcpy(d->exec, exec, size);
}

/* It ran before the kernel side was asked for it: what it runs now begins now. In an audit this is
 * in vain until it is in the job. */
static void join(struct recipe_marker *m, struct descendant *d, const char *comm)
{
	struct {
		struct wire_process exec;
		char cmdline[WIRE_CMDLINE_MAX];
	} record = {.exec.h = {.tgid = d->tgid, .started_ns = d->started_ns}};
	const pid_t pid = (pid_t)d->tgid;
	const bool executed = procfs_has_executed(pid);
	const ssize_t len = procfs_aside_cmdline(pid, record.cmdline, sizeof(record.cmdline));
	uint32_t told = WIRE_TOLD_PROGRAMS;

	if (!m->capture->engine)
		return;
	if (executed && len > 0 && procfs_is_still(pid, d->started_ns)) {
		record.exec.cmdline_len = (uint32_t)len;
		memcpy(record.exec.comm, comm, WIRE_COMM_LEN);
		keep_exec(d, &record.exec);
		told |= WIRE_TOLD_NOW;
	}
	d->told = !engine_tell_programs(m->capture->engine, d->tgid, d->started_ns, told);
	if (d->told)
		log_verbose("process %u: what it runs is held against programs of recipes",
			    d->tgid);
}

void from_exec_forked(struct recipe_marker *m, const struct wire_process *fork)
{
	struct descendant *d = find_or_add(m, fork->h.tgid, fork->h.started_ns, fork->ppid);

	if (!d)
		return;
	d->told = fork->flags & WIRE_PROCESS_TOLD;
	/* A service has told its command line, and says when that begins. */
	if (!m->capture->engine && fork->flags & WIRE_PROCESS_ATTACHED)
		keep_exec(d, fork);
	else if (!d->told)
		join(m, d, fork->comm);
}

void from_exec_was_there(struct recipe_marker *m, const struct profile_process *process)
{
	struct descendant *d = find_or_add(m, process->tgid, process->started_ns, process->ppid);

	if (d && !d->told)
		join(m, d, process->comm);
}

void from_exec_executed(struct recipe_marker *m, const struct wire_process *exec)
{
	struct descendant *d = find_same(m, &exec->h);

	if (d)
		keep_exec(d, exec);
}

void from_exec_exited(struct recipe_marker *m, const struct wire_header *exit)
{
	struct descendant *d = find_same(m, exit);

	if (d)
		forget(m, d);
}

/* ---- What the kernel side is asked for --------------------------------------------------------
 */

void from_exec_tell(struct recipe_marker *m, struct recipe_user *user, uint32_t told)
{
	if (!(told & ~user->told) || !m->capture->engine)
		return;
	user->told |= told;
	engine_tell_programs(m->capture->engine, user->tgid, user->started_ns, told);
}

/* The end of a log is told by what hears the log. */
static bool has_more_than_a_log(const struct recipe *recipe)
{
	for (enum recipe_source source = 0; source < RECIPE_SOURCES; source++)
		if (source != RECIPE_LOG && source != RECIPE_EXEC && recipe_has(recipe, source))
			return true;
	return false;
}

uint32_t from_exec_told_for(const struct recipe *recipe)
{
	return (has_more_than_a_log(recipe) ? WIRE_TOLD_END : 0u) |
	       (recipe_has(recipe, RECIPE_EXEC) ? WIRE_TOLD_CHILDREN : 0u);
}

void from_exec_begin(struct recipe_marker *m, struct recipe_user *user)
{
	uint32_t told = user->heard ? user->heard->what.told : 0;

	for (size_t slot = 0; slot < m->n_slots; slot++)
		if (user->recipes[slot] && !user->inherits[slot])
			told |= from_exec_told_for(user->recipes[slot]);
	from_exec_tell(m, user, told);
}

/* ---- What it tells ----------------------------------------------------------------------------
 */

static void fill_in(const void *context, const char *text, char out[MARK_NAME_MAX])
{
	braces_fill(text, exec_words_fill, context, out, MARK_NAME_MAX);
}

/* Returns false also when out of memory. */
static bool is_met(const struct recipe_item *item, const struct wire_process *exec)
{
	struct rules_match *match =
		item->source == RECIPE_EXEC ? rules_match_new(item->programs) : NULL;
	const bool met = match && look_at_exec(match, exec);

	rules_match_free(match);
	return met;
}

static int meet_items(struct recipe_marker *m, const struct recipe *recipe,
		      const struct wire_process *exec, struct marking *to)
{
	const struct recipe_words words = {.fill = fill_in, .context = exec};
	const struct recipe_tell tell = {marking_mark, to};
	struct teller *teller = teller_new(recipe, recipe_use_of(m, recipe));
	char name[MARK_NAME_MAX];
	int code = 0;

	for (size_t i = 0; teller && !code && i < recipe->n_items; i++) {
		const struct recipe_item *item = &recipe->items[i];

		if (!is_met(item, exec))
			continue;
		code = item->does == RECIPE_PHASE ? teller_enter(teller, i, &words, &tell, name)
						  : teller_act(teller, i, &words, &tell);
	}
	teller_free(teller);
	return code;
}

static int begins(struct recipe_marker *m, struct descendant *d, struct marking *to)
{
	struct wire_process *exec = d->exec;
	int code = 0;

	d->exec = NULL;
	for (size_t i = 0; exec && !code && i < recipes_count(m->recipes); i++)
		if (d->of[i / 64] & UINT64_C(1) << i % 64)
			code = meet_items(m, recipes_at(m->recipes, i), exec, to);
	free(exec);
	return code;
}

int from_exec_told(struct recipe_marker *m, const struct wire_checkpoint *cp, marker_feed_fn feed,
		   void *context)
{
	struct recipe_user *user = recipe_user_of(m, cp->h.tgid);
	struct descendant *d = find_same(m, &cp->h);
	struct marking to = {
		.snapshot = cp,
		.feed = feed,
		.context = context,
		.died = cp->site == WIRE_PROGRAM_DIES,
	};

	if (cp->site == WIRE_PROGRAM_BEGINS) {
		to.begun = d ? &d->begun : NULL;
		if (d && begins(m, d, &to))
			return -1;
	} else {
		if (user && user->started_ns == cp->h.started_ns && recipe_user_over(m, user, &to))
			return -1;
		if (d && marking_end_begun(&to, &d->begun))
			return -1;
	}
	return to.any ? 0 : feed(context, &cp->h);
}
