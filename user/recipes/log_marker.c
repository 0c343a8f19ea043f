/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/log_marker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "capture/capture.h"
#include "format/fields.h"
#include "recipes/log_reader.h"
#include "recipes/rules_look.h"

/* The recipe of the tool, and the one that is used beside it. */
enum { TOOL, BESIDE, KINDS };

/* A process that a recipe has recognised, or may yet recognise by its libraries. */
struct heard {
	uint32_t tgid;
	uint64_t started_ns;
	const struct recipe *recipes[KINDS]; /* NULL: none */
	struct log_reader *readers[KINDS];   /* of the records that are fed; NULL: none */
	bool asks;			     /* libraries may decide which tool it is */
	bool changed;			     /* it runs something else, once the WIRE_EXEC is fed */
	UT_hash_handle hh;
};

struct log_marker {
	struct marker marker; /* first: see marker_of() */
	const struct recipes *recipes;
	struct rules_match *match[KINDS];
	struct heard *heard;
	struct recipe_use *uses;	     /* of each recipe */
	struct recording_recipe *told;	     /* of each recipe that recognised a process */
	struct recording_recipe_item *items; /* of all of them */
	bool deaf;			     /* the kernel side cannot do it: said once */
};

static struct log_marker *marker_of(struct marker *m)
{
	return (struct log_marker *)m;
}

/* ---- Who is heard -----------------------------------------------------------------------------
 */

static void forget(struct log_marker *m, struct heard *heard)
{
	HASH_DEL(m->heard, heard);
	for (unsigned int kind = 0; kind < KINDS; kind++)
		log_reader_free(heard->readers[kind]);
	free(heard);
}

static void forget_all(struct log_marker *m)
{
	while (m->heard)
		forget(m, m->heard);
}

static struct heard *find(struct log_marker *m, uint32_t tgid)
{
	struct heard *heard;

	HASH_FIND(hh, m->heard, &tgid, sizeof(tgid), heard);
	return heard;
}

static struct heard *find_or_add(struct log_marker *m, const struct wire_header *h)
{
	struct heard *heard = find(m, h->tgid);

	if (heard && heard->started_ns == h->started_ns)
		return heard;
	if (heard)
		forget(m, heard);
	heard = calloc(1, sizeof(*heard));
	if (!heard)
		return NULL;
	heard->tgid = h->tgid;
	heard->started_ns = h->started_ns;
	HASH_ADD(hh, m->heard, tgid, sizeof(heard->tgid), heard);
	if (heard->hh.tbl)
		return heard;
	free(heard);
	return NULL;
}

static bool add_literal(struct wire_listening *how, const char *text)
{
	struct wire_literal literal = {0};
	const size_t len = strlen(text);

	memcpy(&literal.bytes, text, len);
	memset(&literal.mask, 0xff, len);
	for (size_t i = 0; i < WIRE_MAX_LITERALS; i++) {
		if (how->literals[i].mask == literal.mask &&
		    how->literals[i].bytes == literal.bytes)
			return true;
		if (how->literals[i].mask)
			continue;
		how->literals[i] = literal;
		return true;
	}
	return false;
}

static bool add_literals(struct wire_listening *how, const struct recipe *recipe)
{
	for (size_t i = 0; recipe && i < recipe->n_logs; i++)
		if (!recipe->logs[i].literal || !add_literal(how, recipe->logs[i].literal))
			return false;
	return true;
}

/* Without a literal of each item, or with too many, the kernel side tells of every text. */
static struct wire_listening listening_for(const struct heard *heard)
{
	struct wire_listening how = {.started_ns = heard->started_ns};

	if (!add_literals(&how, heard->recipes[TOOL]) ||
	    !add_literals(&how, heard->recipes[BESIDE]))
		memset(how.literals, 0, sizeof(how.literals));
	return how;
}

static void listen_to(struct log_marker *m, struct capture *c, const struct heard *heard)
{
	const struct wire_listening how = listening_for(heard);
	struct error err = {0};

	if (m->deaf || !engine_listen(c->engine, heard->tgid, &how, &err))
		return;
	m->deaf = true;
	capture_warn(c, "recipes", err.text);
}

/* Out of memory: nothing is made of what it writes. */
static void make_readers(struct log_marker *m, struct heard *heard)
{
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		const struct recipe *recipe = heard->recipes[kind];

		if (recipe && !heard->readers[kind])
			heard->readers[kind] = log_reader_new(
				recipe, &m->uses[recipe - recipes_at(m->recipes, 0)]);
	}
}

static const struct recipe *recipe_of(const struct log_marker *m, unsigned int kind,
				      const struct rule *rule)
{
	return rule ? recipes_of_rule(m->recipes, kind == BESIDE, rule) : NULL;
}

/* Its libraries may tell which tool it is. */
static void look_at_libraries(struct log_marker *m, struct capture *c, struct heard *heard)
{
	const struct profile_process process = {.tgid = heard->tgid,
						.started_ns = heard->started_ns};
	bool cut;

	heard->recipes[TOOL] =
		recipe_of(m, TOOL, look_at_process(m->match[TOOL], &process, false, &cut));
	if (!heard->recipes[TOOL])
		return;
	heard->asks = false;
	if (!heard->changed)
		make_readers(m, heard);
	listen_to(m, c, heard);
}

static void executed(struct log_marker *m, struct capture *c, const struct wire_process *exec)
{
	const struct recipe *recipes[KINDS];
	struct heard *heard = find(m, exec->h.tgid);
	bool asks;

	for (unsigned int kind = 0; kind < KINDS; kind++)
		recipes[kind] = recipe_of(m, kind, look_at_exec(m->match[kind], exec));
	asks = !recipes[TOOL] && rules_match_asks(m->match[TOOL], RULE_LIBRARY);
	if (heard && (heard->recipes[TOOL] || heard->recipes[BESIDE]))
		engine_stop_listening(c->engine, exec->h.tgid);
	if (!recipes[TOOL] && !recipes[BESIDE] && !asks && !heard)
		return;
	heard = find_or_add(m, &exec->h);
	if (!heard)
		return;
	heard->changed = true;
	heard->asks = asks;
	memcpy(heard->recipes, recipes, sizeof(recipes));
	if (recipes[TOOL] || recipes[BESIDE])
		listen_to(m, c, heard);
}

/* It was there before us: its command line is in /proc. */
static void was_there(struct log_marker *m, struct capture *c, const struct wire_process *fork)
{
	const struct profile_process process = {.tgid = fork->h.tgid,
						.started_ns = fork->h.started_ns};
	struct heard *heard = find_or_add(m, &fork->h);
	bool cut;

	if (!heard)
		return;
	heard->recipes[BESIDE] =
		recipe_of(m, BESIDE, look_at_process(m->match[BESIDE], &process, false, &cut));
	look_at_libraries(m, c, heard);
	heard->asks = !heard->recipes[TOOL] && rules_match_asks(m->match[TOOL], RULE_LIBRARY);
	if (heard->recipes[BESIDE] && !heard->recipes[TOOL]) {
		make_readers(m, heard);
		listen_to(m, c, heard);
	}
}

static void arrived(struct marker *marker, struct capture *c, const struct wire_header *h)
{
	struct log_marker *m = marker_of(marker);
	const struct wire_process *process = (const struct wire_process *)h;
	struct heard *heard;

	switch ((enum wire_kind)h->kind) {
	case WIRE_EXEC:
		executed(m, c, process);
		break;
	case WIRE_FORK:
		if (process->flags & WIRE_PROCESS_ATTACHED)
			was_there(m, c, process);
		break;
	case WIRE_MAPPED:
		heard = find(m, h->tgid);
		if (heard && heard->asks)
			look_at_libraries(m, c, heard);
		break;
	default:
		break;
	}
}

/* ---- What they say ----------------------------------------------------------------------------
 */

/* A text that becomes checkpoints. */
struct turning {
	const struct wire_checkpoint *text;
	marker_feed_fn feed;
	void *context;
	bool any; /* one was fed, with the snapshot */
};

static enum wire_what what_of(const struct log_mark *mark)
{
	switch (mark->does) {
	case RECIPE_BEGIN:
		return WIRE_BEGIN;
	case RECIPE_END:
		return WIRE_END;
	case RECIPE_MARK:
		return WIRE_MARK;
	default:
		return WIRE_METRIC;
	}
}

/* The snapshot belongs to the first checkpoint of a text. No time lies between it and the rest. */
static void share_snapshot(struct wire_checkpoint *cp)
{
	const struct wire_memory *tree = &cp->tree.memory, *own = &cp->own.memory;

	cp->text_state = WIRE_TEXT_AGAIN;
	cp->tree.memory.step_peak = tree->file + tree->anon + tree->shmem;
	cp->own.memory.step_peak = own->file + own->anon + own->shmem;
}

/* The checkpoint is the process's, not the thread's that happened to write. */
static int turn(void *context, const struct log_mark *mark)
{
	struct turning *t = context;
	struct {
		struct wire_checkpoint cp;
		char name[WIRE_NAME_MAX];
	} record = {.cp = *t->text};

	record.cp.h.tid = record.cp.h.tgid;
	record.cp.h.size = sizeof(record);
	record.cp.what = what_of(mark);
	record.cp.site = mark->summary ? WIRE_SITE_SUMMARY : WIRE_SITE_NONE;
	record.cp.text_state = 0;
	record.cp.value_state = WIRE_VALUE_NONE;
	record.cp.value = 0;
	if (record.cp.what == WIRE_METRIC) {
		record.cp.value_state = mark->has_value ? WIRE_VALUE_DOUBLE : WIRE_VALUE_UNREADABLE;
		memcpy(&record.cp.value, &mark->value, sizeof(record.cp.value));
	}
	record.cp.name_len = (uint32_t)strnlen(mark->name, WIRE_NAME_MAX - 1);
	memcpy(record.name, mark->name, record.cp.name_len);
	if (t->any)
		share_snapshot(&record.cp);
	t->any = true;
	return t->feed(t->context, &record.cp.h);
}

static int read_text(struct log_reader *reader, const struct wire_checkpoint *cp, struct turning *t)
{
	const unsigned int stream = cp->site == 2;

	if (!cp->value)
		return log_reader_end(reader, turn, t);
	if (cp->text_state & WIRE_TEXT_SKIPPED)
		log_reader_skip(reader, stream, cp->text_state & WIRE_TEXT_AT_START);
	if (log_reader_text(reader, stream, cp->name, cp->name_len, turn, t))
		return -1;
	/* The end of a long text was left out, and may have ended a line. */
	if (cp->value > cp->name_len)
		log_reader_skip(reader, stream, false);
	return 0;
}

static int text(struct log_marker *m, const struct wire_checkpoint *cp, marker_feed_fn feed,
		void *context)
{
	struct turning t = {.text = cp, .feed = feed, .context = context};
	const struct heard *heard = find(m, cp->h.tgid);

	for (unsigned int kind = 0; heard && kind < KINDS; kind++)
		if (heard->readers[kind] && read_text(heard->readers[kind], cp, &t))
			return -1;
	return t.any ? 0 : feed(context, &cp->h);
}

static void process_changed(struct log_marker *m, const struct wire_header *h)
{
	struct heard *heard = find(m, h->tgid);

	if (!heard || heard->started_ns != h->started_ns)
		return;
	if (h->kind == WIRE_EXIT) {
		forget(m, heard);
	} else if (heard->changed) {
		heard->changed = false;
		for (unsigned int kind = 0; kind < KINDS; kind++) {
			log_reader_free(heard->readers[kind]);
			heard->readers[kind] = NULL;
		}
		make_readers(m, heard);
	}
}

static int record(struct marker *marker, const struct wire_header *h, marker_feed_fn feed,
		  void *context)
{
	struct log_marker *m = marker_of(marker);
	const struct wire_checkpoint *cp = (const struct wire_checkpoint *)h;

	if (h->kind == WIRE_CHECKPOINT && cp->what == WIRE_TEXT)
		return text(m, cp, feed, context);
	if (h->kind == WIRE_EXIT || h->kind == WIRE_EXEC)
		process_changed(m, h);
	return feed(context, h);
}

/* ---- The end ----------------------------------------------------------------------------------
 */

static void warn_of_idle_items(struct capture *c, const struct recipe *recipe,
			       const struct recipe_use *use)
{
	char why[RECIPE_TEXT_MAX * 3];
	size_t len = 0, idle = 0;

	for (size_t i = 0; i < recipe->n_logs; i++) {
		if (use->matched[i] || len >= sizeof(why))
			continue;
		len += (size_t)snprintf(why + len, sizeof(why) - len, "%s'%s'", idle++ ? ", " : "",
					recipe->logs[i].text);
	}
	if (idle && len < sizeof(why))
		snprintf(why + len, sizeof(why) - len,
			 ": no line matched; the recipe was made for %s",
			 recipe->read_from ? recipe->read_from : "another version");
	if (idle)
		capture_warn(c, recipe->name, why);
}

/* A recipe that is used beside others is used on many programs that it has nothing to do with. */
static bool is_worth_telling(const struct recipe *recipe, const struct recipe_use *use)
{
	uint64_t matched = use->too_costly;

	for (size_t i = 0; i < recipe->n_logs; i++)
		matched += use->matched[i];
	return recipe->beside ? matched : use->processes;
}

static void tell_recipe(struct log_marker *m, size_t at, struct recording_recipe *told)
{
	const struct recipe *recipe = recipes_at(m->recipes, at);
	const struct recipe_use *use = &m->uses[at];
	struct recording_recipe_item *items = m->items + at * RECIPE_MAX_ITEMS;

	for (size_t i = 0; i < recipe->n_logs; i++)
		items[i] = (struct recording_recipe_item){
			.has = field_all(&record_recipe_item),
			.log = (char *)recipe->logs[i].text,
			.matched = use->matched[i],
		};
	*told = (struct recording_recipe){
		.has = field_all(&record_recipe),
		.name = (char *)recipe->name,
		.read_from = (char *)recipe->read_from,
		.processes = use->processes,
		.items = items,
		.n_items = recipe->n_logs,
		.buffered_lines = use->buffered,
		.cut_lines = use->cut_lines,
		.costly_lines = use->too_costly,
		.undrawn_steps = use->undrawn,
	};
	field_put(&record_recipe, told, "read_from", recipe->read_from);
}

static const struct recording_recipe *tell(struct marker *marker, struct capture *c, size_t *n)
{
	struct log_marker *m = marker_of(marker);

	forget_all(m); /* their lines are counted with that */
	*n = 0;
	for (size_t i = 0; i < recipes_count(m->recipes); i++) {
		const struct recipe *recipe = recipes_at(m->recipes, i);

		if (!is_worth_telling(recipe, &m->uses[i]))
			continue;
		tell_recipe(m, i, &m->told[(*n)++]);
		if (!recipe->beside)
			warn_of_idle_items(c, recipe, &m->uses[i]);
	}
	return m->told;
}

static void close_marker(struct marker *marker)
{
	struct log_marker *m = marker_of(marker);

	forget_all(m);
	for (unsigned int kind = 0; kind < KINDS; kind++)
		rules_match_free(m->match[kind]);
	free(m->uses);
	free(m->told);
	free(m->items);
	free(m);
}

struct marker *log_marker_new(const struct recipes *recipes)
{
	const size_t n = recipes_count(recipes) + 1;
	struct log_marker *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->marker = (struct marker){arrived, record, tell, close_marker};
	m->recipes = recipes;
	for (unsigned int kind = 0; kind < KINDS; kind++)
		m->match[kind] = rules_match_new(recipes_rules(recipes, kind == BESIDE));
	m->uses = calloc(n, sizeof(*m->uses));
	m->told = calloc(n, sizeof(*m->told));
	m->items = calloc(n * RECIPE_MAX_ITEMS, sizeof(*m->items));
	if (m->match[TOOL] && m->match[BESIDE] && m->uses && m->told && m->items)
		return &m->marker;
	close_marker(&m->marker);
	return NULL;
}

bool log_marker_expects(struct marker *marker, char *const *command)
{
	struct log_marker *m = marker_of(marker);
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
	return look_at_exec(m->match[TOOL], &record.exec) ||
	       rules_match_asks(m->match[TOOL], RULE_LIBRARY) ||
	       look_at_exec(m->match[BESIDE], &record.exec);
}
