/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/recipe_marker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "capture/capture.h"
#include "kernel/procfs.h"
#include "recipes/from.h"
#include "recipes/from_file.h"

static struct recipe_marker *marker_of(struct marker *m)
{
	return (struct recipe_marker *)m;
}

/* ---- Who is heard -----------------------------------------------------------------------------
 */

static void free_teller(struct recipe_user *user, size_t slot)
{
	log_reader_free(user->logs[slot]);
	teller_free(user->tellers[slot]);
	user->logs[slot] = NULL;
	user->tellers[slot] = NULL;
}

static void free_tellers(struct recipe_user *user)
{
	for (size_t slot = 0; slot < RECIPE_SLOTS; slot++)
		free_teller(user, slot);
	calls_free(&user->calls);
}

bool recipe_user_uses_any(const struct recipe_user *user)
{
	for (size_t slot = 0; slot < RECIPE_SLOTS; slot++)
		if (user->recipes[slot])
			return true;
	return false;
}

static bool is_listened_to(const struct recipe_user *user)
{
	return (user->heard && source_hears(&user->heard->what)) || recipe_user_uses_any(user);
}

void recipe_user_hear(struct recipe_user *user, struct heard_job *heard)
{
	if (user->heard)
		user->heard->processes--;
	user->heard = heard;
	if (heard)
		heard->processes++;
}

void recipe_user_end(struct recipe_marker *m, const struct recipe_user *user)
{
	if (!is_listened_to(user) || !m->capture->engine)
		return;
	from_log_end(m, m->capture, user);
	from_place_end(m, m->capture, user);
	from_file_end(m, user->tgid);
}

void recipe_user_forget(struct recipe_marker *m, struct recipe_user *user)
{
	recipe_user_end(m, user);
	recipe_user_hear(user, NULL);
	HASH_DEL(m->users, user);
	from_file_forget(user);
	free_tellers(user);
	begun_free(&user->begun);
	from_python_end(user);
	free(user);
}

static void forget_all(struct recipe_marker *m)
{
	struct recipe_user *user = NULL, *next;

	HASH_ITER (hh, m->users, user, next) {
		recipe_user_forget(m, user);
	}
}

struct recipe_user *recipe_user_of(struct recipe_marker *m, uint32_t tgid)
{
	struct recipe_user *user;

	HASH_FIND(hh, m->users, &tgid, sizeof(tgid), user);
	return user;
}

struct recipe_use *recipe_use_of(struct recipe_marker *m, const struct recipe *recipe)
{
	return &m->uses[recipe - recipes_at(m->recipes, 0)];
}

struct recipe_user *recipe_user_get(struct recipe_marker *m, uint32_t tgid, uint64_t started_ns)
{
	struct recipe_user *user = recipe_user_of(m, tgid);

	if (user && user->started_ns == started_ns)
		return user;
	if (user)
		recipe_user_forget(m, user);
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->tgid = tgid;
	user->started_ns = started_ns;
	HASH_ADD(hh, m->users, tgid, sizeof(user->tgid), user);
	if (user->hh.tbl)
		return user;
	free(user);
	return NULL;
}

void recipe_user_meets(struct recipe_marker *m, struct recipe_user *user,
		       const struct recipe *recipe)
{
	const size_t at = (size_t)(recipe - recipes_at(m->recipes, 0));

	m->uses[at].processes += !(user->met[at / 64] & UINT64_C(1) << at % 64);
	user->met[at / 64] |= UINT64_C(1) << at % 64;
}

/* Out of memory: nothing is made of what it says. */
static void make_tellers(struct recipe_marker *m, struct recipe_user *user)
{
	for (size_t slot = 0; slot < m->n_slots; slot++) {
		const struct recipe *recipe = user->recipes[slot];

		if (!recipe || user->tellers[slot])
			continue;
		user->tellers[slot] = user->inherits[slot]
					      ? teller_new_child(recipe, recipe_use_of(m, recipe))
					      : teller_new(recipe, recipe_use_of(m, recipe));
		if (!user->inherits[slot])
			recipe_user_meets(m, user, recipe);
		if (user->tellers[slot])
			user->logs[slot] = log_reader_new(user->tellers[slot]);
	}
}

void recipe_user_begin(struct recipe_marker *m, struct recipe_user *user)
{
	if (!is_listened_to(user))
		return;
	m->capture->prompt = true; /* what it does next may be what an item listens to */
	if (!user->changed)
		make_tellers(m, user);
	if (!m->capture->engine) /* a service listens already */
		return;
	from_log_begin(m, m->capture, user);
	from_place_begin(m, m->capture, user);
	from_file_begin(m, user);
	from_exec_begin(m, user);
}

/* What has an end of its own, as a call has its return, is cut short, however the process ends. */
int recipe_user_over(struct recipe_marker *m, struct recipe_user *user, struct marking *to)
{
	const struct recipe_tell tell = {marking_mark, to};
	struct marking cut;
	int code;

	to->begun = &user->begun;
	for (size_t slot = 0; slot < m->n_slots; slot++) {
		struct teller *teller = user->tellers[slot];

		if (teller && (to->died ? teller_die(teller, &tell) : teller_end(teller, &tell)))
			return -1;
	}
	if (from_file_over(user, to))
		return -1;
	calls_free(&user->calls);
	cut = *to;
	cut.died = true;
	code = marking_end_begun(&cut, &user->begun);
	to->any = cut.any;
	return code;
}

const struct recipe *recipe_found(const struct recipe_marker *m, size_t slot,
				  const struct rule *rule)
{
	return rule ? recipes_of_rule(m->recipes, slot, rule) : NULL;
}

/* What recognises the process itself comes before what its parent has for its children. */
void recipe_user_choose(struct recipe_user *user, size_t slot, const struct recipe *own)
{
	user->recipes[slot] = own ? own : user->from_parent[slot];
	user->inherits[slot] = !own && user->from_parent[slot];
}

static bool is_own(const struct recipe_user *user, size_t slot)
{
	return user->recipes[slot] && !user->inherits[slot];
}

/* Once it maps or opens more. */
static bool may_yet_match(const struct rules_match *match)
{
	return rules_match_asks(match, RULE_LIBRARY) || rules_match_asks(match, RULE_FILE);
}

struct look_matches recipe_marker_matches(const struct recipe_marker *m,
					  const struct recipe *const *known, size_t n)
{
	struct look_matches to = {0};

	for (size_t slot = 0; slot < n; slot++)
		if (!known[slot])
			to.matches[to.n++] = m->match[slot];
	return to;
}

/* Holds what /proc has of it against the recipes of slots, and its modules. Returns false if the
 * process is gone. */
static bool look(struct recipe_marker *m, const struct recipe_user *user,
		 const struct recipe *const *known, size_t n)
{
	const struct profile_process process = {.tgid = user->tgid, .started_ns = user->started_ns};
	const struct look_matches to = recipe_marker_matches(m, known, n);
	bool cut;

	if (!to.n || !look_at_process(&to, &process, true, &cut))
		return false;
	for (size_t i = 0; i < user->n_modules; i++)
		for (size_t k = 0; k < to.n; k++)
			rules_match_offer(to.matches[k], RULE_MODULE, "imports", user->modules[i]);
	return true;
}

static void choose(struct recipe_marker *m, struct recipe_user *user, size_t slot,
		   const struct recipe *own)
{
	if (own && !user->changed)
		free_teller(user, slot); /* of its parent's recipe */
	recipe_user_choose(user, slot, own);
	if (slot == TOOL_SLOT)
		user->asks = !own && may_yet_match(m->match[slot]);
}

/* Looks into the first n slots, but those in which it has a recipe of its own. Returns true if one
 * was found that was not known before. */
static bool find_recipes(struct recipe_marker *m, struct recipe_user *user, size_t n)
{
	const struct recipe *known[RECIPE_SLOTS] = {0};
	bool is_there, any = false;

	for (size_t slot = 0; slot < n; slot++)
		known[slot] = is_own(user, slot) ? user->recipes[slot] : NULL;
	is_there = look(m, user, known, n);
	for (size_t slot = 0; slot < n; slot++) {
		const struct recipe *own =
			is_there && !known[slot]
				? recipe_found(m, slot, rules_match_verdict(m->match[slot]))
				: NULL;

		if (!known[slot])
			choose(m, user, slot, own);
		any |= own != NULL;
	}
	return any;
}

static void look_at_slots(struct recipe_marker *m, struct recipe_user *user, size_t n)
{
	const uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool any;

	user->unlooked = !recipe_user_may_look(m, user);
	if (user->unlooked)
		return;
	any = find_recipes(m, user, n);
	recipe_user_looked(m, user, clock_ns(CLOCK_THREAD_CPUTIME_ID) - began);
	if (any)
		recipe_user_begin(m, user);
}

void recipe_user_look(struct recipe_marker *m, struct recipe_user *user)
{
	look_at_slots(m, user, m->n_slots);
}

static void look_for_tool(struct recipe_marker *m, struct recipe_user *user)
{
	if (user->asks)
		look_at_slots(m, user, TOOL_SLOT + 1);
}

void recipe_user_mapped(struct recipe_marker *m, const struct wire_header *mapped)
{
	struct recipe_user *user = recipe_user_of(m, mapped->tgid);

	if (user && user->started_ns == mapped->started_ns)
		look_for_tool(m, user);
}

void recipe_user_executed(struct recipe_marker *m, const struct wire_process *exec)
{
	const bool is_run = !m->capture->options->engine.audit;
	struct recipe_user now = {0}, *user = recipe_user_of(m, exec->h.tgid);

	if (user && user->started_ns == exec->h.started_ns)
		memcpy(now.from_parent, user->from_parent, sizeof(now.from_parent));
	now.heard = recipe_marker_heard_job(m, exec->h.job);
	for (size_t slot = 0; slot < m->n_slots; slot++) {
		recipe_user_choose(&now, slot,
				   recipe_found(m, slot, look_at_exec(m->match[slot], exec)));
		now.hinges |= is_run && rules_match_hinges(m->match[slot], m->ends_hold);
	}
	now.asks = !is_own(&now, TOOL_SLOT) && may_yet_match(m->match[TOOL_SLOT]);
	if (user)
		recipe_user_end(m, user);
	if (!user && !((is_listened_to(&now) || now.asks || now.hinges) &&
		       recipe_marker_has_room(m, now.heard)))
		return;
	user = recipe_user_get(m, exec->h.tgid, exec->h.started_ns);
	if (!user)
		return;
	recipe_user_hear(user, now.heard);
	from_python_end(user);
	user->executed_ns = exec->h.time_ns;
	user->changed = true;
	user->whole = true;
	user->told = 0;
	user->asks = now.asks;
	user->hinges = now.hinges;
	memcpy(user->recipes, now.recipes, sizeof(user->recipes));
	memcpy(user->inherits, now.inherits, sizeof(user->inherits));
	recipe_user_begin(m, user);
}

/* Returns true if the process that started it has recipes for its children. */
static bool inherit(struct recipe_marker *m, const struct wire_process *fork,
		    const struct recipe *from_parent[RECIPE_SLOTS])
{
	const struct recipe_user *parent = recipe_user_of(m, fork->ppid);
	bool any = false;

	for (size_t slot = 0; parent && slot < m->n_slots; slot++) {
		if (!from_log_wants_children(parent->recipes[slot]))
			continue;
		from_parent[slot] = parent->recipes[slot];
		any = true;
	}
	return any;
}

/* The kernel side listens to it already; a service says whether it does by what it tells. */
void recipe_user_forked(struct recipe_marker *m, const struct wire_process *fork)
{
	const struct recipe *from_parent[RECIPE_SLOTS] = {0};
	struct heard_job *heard = recipe_marker_heard_job(m, fork->h.job);
	struct engine *engine = m->capture->engine;
	struct wire_listening how;
	struct recipe_user *user;
	bool wanted = inherit(m, fork, from_parent) || (heard && heard->what.texts);

	if (engine &&
	    (!(fork->flags & WIRE_PROCESS_HEARD) || !engine_listens_to_child(engine, fork->h.tgid)))
		return;
	wanted = wanted && recipe_marker_has_room(m, heard);
	user = wanted ? recipe_user_get(m, fork->h.tgid, fork->h.started_ns) : NULL;
	if (!user) { /* nobody else would take it back */
		if (engine)
			engine_stop_listening(engine, fork->h.tgid, &how);
		return;
	}
	recipe_user_hear(user, heard);
	memcpy(user->from_parent, from_parent, sizeof(from_parent));
	for (size_t slot = 0; slot < m->n_slots; slot++)
		recipe_user_choose(user, slot, NULL);
	make_tellers(m, user);
}

/* It was there before us: its command line is in /proc. */
static void was_there(struct recipe_marker *m, const struct wire_process *fork)
{
	struct recipe_user *user = recipe_user_get(m, fork->h.tgid, fork->h.started_ns);

	if (!user)
		return;
	inherit(m, fork, user->from_parent);
	find_recipes(m, user, m->n_slots);
	recipe_user_begin(m, user);
}

static void hold_by_end(void *context, const char *end)
{
	struct recipe_marker *m = context;

	m->ends_hold &= engine_hold_by_end(m->capture->engine, end);
}

/* Of most programs no argument decides what they are, but for the names of model files. */
static void begin(struct recipe_marker *m, struct capture *c)
{
	m->capture = c;
	m->ends_hold = true;
	if (m->rest)
		recipe_marker_read_rest(m, c);
	for (size_t slot = 0; c->engine && slot < m->n_slots; slot++)
		rules_each_end(recipes_rules(m->recipes, slot), hold_by_end, m);
}

static void arrived(struct marker *marker, struct capture *c, const struct wire_header *h)
{
	struct recipe_marker *m = marker_of(marker);
	const struct wire_process *process = (const struct wire_process *)h;
	struct recipe_user *user;

	if (!m->capture)
		begin(m, c);
	if (c->failed) /* to read them */
		return;
	switch ((enum wire_kind)h->kind) {
	case WIRE_EXEC:
		recipe_user_executed(m, process);
		break;
	case WIRE_FORK:
		if (process->flags & WIRE_PROCESS_ATTACHED)
			was_there(m, process);
		else
			recipe_user_forked(m, process);
		break;
	case WIRE_EXIT:
		user = recipe_user_of(m, h->tgid);
		if (user)
			recipe_user_end(m, user);
		break;
	case WIRE_MAPPED:
		recipe_user_mapped(m, h);
		break;
	case WIRE_CHECKPOINT:
		if (m->starts && from_python_is(m, (const struct wire_checkpoint *)h))
			from_python_arrived(m, (const struct wire_checkpoint *)h);
		break;
	default:
		break;
	}
}

static bool holds(struct marker *marker, uint32_t tgid)
{
	const struct recipe_user *user = recipe_user_of(marker_of(marker), tgid);

	return user && (recipe_user_uses_any(user) || user->hinges);
}

/* ---- What they say ----------------------------------------------------------------------------
 */

/* What a process of a served run maps is not told of: it is looked at when it is heard. It may
 * write much: then with the 1st, 2nd, 4th text and so on. */
static void look_again(struct recipe_marker *m, struct recipe_user *user, bool writes)
{
	user->texts += writes;
	if (!writes || !(user->texts & (user->texts - 1)))
		look_for_tool(m, user);
}

static int heard(struct recipe_marker *m, const struct wire_checkpoint *cp, marker_feed_fn feed,
		 void *context)
{
	struct recipe_user *user = recipe_user_of(m, cp->h.tgid);
	struct marking to = {
		.snapshot = cp,
		.feed = feed,
		.context = context,
		/* Its snapshot was fed with another text. */
		.any = cp->text_state & WIRE_TEXT_AGAIN,
	};

	if (m->capture->options->source && user)
		look_again(m, user, cp->what == WIRE_TEXT);
	if (cp->what == WIRE_TEXT ? from_log_text(m, cp, &to) : from_place_hit(m, cp, &to))
		return -1;
	return to.any ? 0 : feed(context, &cp->h);
}

/* What is fed goes through here, to see marks that are made by other means than of files. */
struct seeing {
	struct recipe_marker *m;
	marker_feed_fn feed;
	void *context;
};

static bool is_mark(const struct wire_header *h)
{
	const struct wire_checkpoint *cp = (const struct wire_checkpoint *)h;

	return h->kind == WIRE_CHECKPOINT &&
	       (cp->what == WIRE_BEGIN || cp->what == WIRE_END || cp->what == WIRE_MARK);
}

static int see(void *context, const struct wire_header *h)
{
	const struct seeing *s = context;
	struct recipe_user *user = is_mark(h) ? recipe_user_of(s->m, h->tgid) : NULL;
	struct marking to = {.feed = s->feed, .context = s->context};

	if (!user || user->started_ns != h->started_ns)
		return s->feed(s->context, h);
	to.snapshot = (const struct wire_checkpoint *)h;
	to.begun = &user->begun;
	if (from_file_marked(s->m, user, &to))
		return -1;
	return to.any ? marking_last(&to) : s->feed(s->context, h);
}

/* How it ended says what its recipes may have missed. */
static void note_end(const struct recipe_user *user, const struct wire_process *exit)
{
	for (size_t slot = 0; slot < RECIPE_SLOTS && !exit->exit_code; slot++) {
		struct teller *teller = user->tellers[slot];

		if (!teller || teller_is_child(teller))
			continue;
		teller_use(teller)->finished++;
		teller_use(teller)->whole += user->whole;
	}
}

static void process_changed(struct recipe_marker *m, const struct wire_header *h)
{
	struct recipe_user *user = recipe_user_of(m, h->tgid);

	if (h->kind == WIRE_EXIT)
		from_exec_exited(m, h);
	else
		from_exec_executed(m, (const struct wire_process *)h);
	if (!user || user->started_ns != h->started_ns)
		return;
	if (h->kind == WIRE_EXIT) {
		note_end(user, (const struct wire_process *)h);
		recipe_user_forget(m, user);
	} else if (user->changed) {
		user->changed = false;
		user->marked = false;
		from_file_forget(user);
		free_tellers(user);
		memset(user->met, 0, sizeof(user->met));
		make_tellers(m, user);
	}
}

static int record(struct marker *marker, const struct wire_header *h, marker_feed_fn feed,
		  void *context)
{
	struct recipe_marker *m = marker_of(marker);
	const struct wire_checkpoint *cp = (const struct wire_checkpoint *)h;
	struct seeing seeing = {m, feed, context};

	if (from_file_before(m, h, feed, context))
		return -1;
	if (h->kind == WIRE_CHECKPOINT && cp->what == WIRE_FILE)
		return from_file_used(m, cp, feed, context);
	if (h->kind == WIRE_CHECKPOINT && cp->what == WIRE_PROGRAM)
		return from_exec_told(m, cp, feed, context);
	if (h->kind == WIRE_CHECKPOINT && WIRE_IS_HEARD(cp->what))
		return heard(m, cp, see, &seeing);
	if (h->kind == WIRE_CHECKPOINT && from_python_is(m, cp))
		return from_python_said(m, cp, see, &seeing);
	if (h->kind == WIRE_EXIT || h->kind == WIRE_EXEC)
		process_changed(m, h);
	if (see(&seeing, h))
		return -1;
	if (h->kind == WIRE_FORK) /* in an audit, it may have joined its parent's job by that */
		from_exec_forked(m, (const struct wire_process *)h);
	return 0;
}

/* ---- The end ----------------------------------------------------------------------------------
 */

static const struct recording_recipe *tell(struct marker *marker, struct capture *c, size_t *n)
{
	struct recipe_marker *m = marker_of(marker);

	forget_all(m); /* their lines are counted with that */
	if (c->options->source)
		from_place_take_account(m, &c->options->source->account);
	return recipe_marker_tell(m, c, n);
}

static void close_marker(struct marker *marker)
{
	struct recipe_marker *m = marker_of(marker);

	forget_all(m);
	recipe_served_free(m);
	for (size_t slot = 0; slot < m->n_slots; slot++)
		rules_match_free(m->match[slot]);
	python_items_free(&m->python);
	free(m->rest);
	from_exec_free(m);
	from_place_free(m);
	free(m->uses);
	free(m->told);
	free(m->items);
	free(m);
}

static struct recipe_marker *make(struct recipes *recipes)
{
	struct recipe_marker *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->marker = (struct marker){
		.ready = recipe_marker_ready,
		.arrived = arrived,
		.holds = holds,
		.record = record,
		.hear = recipe_marker_hear,
		.hear_process = recipe_marker_hear_process,
		.tell = tell,
		.close = close_marker,
	};
	m->recipes = recipes;
	return m;
}

struct marker *recipe_marker_new(struct recipes *recipes)
{
	struct recipe_marker *m = make(recipes);

	if (!m || !recipe_marker_make_room(m))
		return m ? &m->marker : NULL;
	close_marker(&m->marker);
	return NULL;
}

struct marker *recipe_marker_reading(struct recipes *recipes, const char *directory)
{
	struct recipe_marker *m = make(recipes);

	if (m)
		m->rest = strdup(directory);
	if (!m || m->rest)
		return m ? &m->marker : NULL;
	close_marker(&m->marker);
	return NULL;
}

static bool any_tool_has(const struct recipe_marker *m, enum recipe_source source)
{
	for (size_t i = 0; i < recipes_count(m->recipes); i++)
		if (!recipes_at(m->recipes, i)->beside &&
		    recipe_has(recipes_at(m->recipes, i), source))
			return true;
	return false;
}

bool recipe_marker_expects(struct marker *marker, char *const *command, enum recipe_source source)
{
	struct recipe_marker *m = marker_of(marker);
	struct {
		struct wire_process exec;
		char cmdline[WIRE_CMDLINE_MAX];
	} record = {0};
	size_t len = 0;

	for (size_t i = 0; command[i] && len < sizeof(record.cmdline); i++)
		len += (size_t)snprintf(record.cmdline + len, sizeof(record.cmdline) - len, "%s",
					command[i]) +
		       1;
	record.exec.cmdline_len =
		(uint32_t)(len < sizeof(record.cmdline) ? len : sizeof(record.cmdline));
	for (size_t slot = 0; slot < m->n_slots; slot++) {
		const struct recipe *recipe =
			recipe_found(m, slot, look_at_exec(m->match[slot], &record.exec));

		if (recipe ? recipe_has(recipe, source)
			   : slot == TOOL_SLOT && rules_match_asks(m->match[slot], RULE_LIBRARY) &&
				     any_tool_has(m, source))
			return true;
	}
	return false;
}
