/* SPDX-License-Identifier: GPL-2.0-only */
/* from_log.c - checkpoints from what a process writes to its stdout and stderr. */
#include <errno.h>
#include <string.h>

#include "capture/capture.h"
#include "recipes/from.h"

/* What the kernel side looks for before it compares: fewer are quicker. */
static void add_first(struct wire_listening *how, unsigned char first)
{
	unsigned int shift = 0;

	while (how->firsts >> shift & 0xff && (how->firsts >> shift & 0xff) != first)
		shift += 8;
	how->firsts |= (uint64_t)first << shift;
}

static void fill_firsts(struct wire_listening *how)
{
	for (size_t i = 0; i < WIRE_MAX_LITERALS && how->literals[i].mask; i++)
		add_first(how, how->literals[i].bytes & 0xff);
	for (unsigned int shift = 0; shift < 64; shift += 8)
		if (!(how->firsts >> shift & 0xff))
			how->firsts |= (how->firsts & 0xff) << shift;
}

static bool add_literal(struct wire_literal to[WIRE_MAX_LITERALS],
			const struct wire_literal *literal)
{
	for (size_t i = 0; i < WIRE_MAX_LITERALS; i++) {
		if (to[i].mask == literal->mask && to[i].bytes == literal->bytes)
			return true;
		if (to[i].mask)
			continue;
		to[i] = *literal;
		return true;
	}
	return false;
}

static bool add_text(struct wire_literal to[WIRE_MAX_LITERALS], const char *text)
{
	struct wire_literal literal = {0};
	const size_t len = strlen(text);

	memcpy(&literal.bytes, text, len);
	memset(&literal.mask, 0xff, len);
	return add_literal(to, &literal);
}

static bool is_heard(const struct recipe_item *item, bool of_child)
{
	return item->source == RECIPE_LOG && (item->children || !of_child);
}

/* Returns false if not all items have a literal, or there are too many. */
static bool add_literals(struct wire_literal to[WIRE_MAX_LITERALS], const struct recipe *recipe,
			 bool of_child)
{
	for (size_t i = 0; i < recipe->n_items; i++) {
		const struct recipe_item *item = &recipe->items[i];

		if (is_heard(item, of_child) && (!item->literal || !add_text(to, item->literal)))
			return false;
	}
	return true;
}

static bool has_log(const struct recipe *recipe, bool of_child)
{
	for (size_t i = 0; recipe && i < recipe->n_items; i++)
		if (is_heard(&recipe->items[i], of_child))
			return true;
	return false;
}

bool from_log_wants_children(const struct recipe *recipe)
{
	return has_log(recipe, true);
}

static bool add_heard(struct wire_literal to[WIRE_MAX_LITERALS], const struct source_heard *heard)
{
	if (heard->texts == SOURCE_ALL_TEXTS)
		return false;
	for (size_t i = 0; i < WIRE_MAX_LITERALS && heard->literals[i].mask; i++)
		if (!add_literal(to, &heard->literals[i]))
			return false;
	return true;
}

void from_log_hear(const struct recipe *recipe, struct source_heard *heard)
{
	if (!has_log(recipe, false) || heard->texts == SOURCE_ALL_TEXTS)
		return;
	heard->texts = SOURCE_TEXTS_WITH_LITERALS;
	if (add_literals(heard->literals, recipe, false))
		return;
	heard->texts = SOURCE_ALL_TEXTS;
	memset(heard->literals, 0, sizeof(heard->literals));
}

/* Without a literal of each item, or with too many, the kernel side tells of every text. Returns
 * false if no item listens to the log. */
static bool listening_for(const struct recipe_user *user, struct wire_listening *how)
{
	const struct source_heard *heard = user->heard ? &user->heard->what : NULL;
	bool any = false, all = true;

	*how = (struct wire_listening){.started_ns = user->started_ns};
	for (size_t slot = 0; slot < RECIPE_SLOTS; slot++) {
		const struct recipe *recipe = user->recipes[slot];
		const bool of_child = user->inherits[slot];

		if (!has_log(recipe, of_child))
			continue;
		any = true;
		all &= add_literals(how->literals, recipe, of_child);
		how->children |= from_log_wants_children(recipe);
	}
	if (heard && heard->texts) {
		any = true;
		how->children = 1;
		all &= add_heard(how->literals, heard);
	}
	fill_firsts(how);
	if (!all)
		memset(how->literals, 0, sizeof(how->literals));
	return any;
}

void from_log_begin(struct recipe_marker *m, struct capture *c, const struct recipe_user *user)
{
	struct wire_listening how;
	struct error err = {0};
	int code = 0;

	if (!m->deaf && listening_for(user, &how))
		code = engine_listen(c->engine, user->tgid, &how, &err);
	if (code == -ENOSPC) {
		capture_warn(c, "recipes",
			     "more than 1024 processes at a time: what others write is not heard");
	} else if (code) {
		m->deaf = true;
		capture_warn(c, "recipes", err.text);
	}
}

void from_log_end(struct recipe_marker *m, struct capture *c, const struct recipe_user *user)
{
	struct wire_listening how;

	if (!engine_stop_listening(c->engine, user->tgid, &how))
		return;
	for (size_t slot = 0; slot < m->n_slots; slot++)
		if (has_log(user->recipes[slot], user->inherits[slot]))
			recipe_use_of(m, user->recipes[slot])->limited += how.limited;
}

static int read_text(struct log_reader *reader, const struct wire_checkpoint *text,
		     const struct recipe_tell *tell)
{
	const unsigned int stream = text->site == WIRE_TEXT_STDERR;

	if (text->text_state & WIRE_TEXT_SKIPPED)
		log_reader_skip(reader, stream, text->text_state & WIRE_TEXT_AT_START);
	return log_reader_text(reader, stream, text->name, text->name_len,
			       text->text_state & WIRE_TEXT_AGAIN, tell);
}

static int read_slot(const struct recipe_user *user, size_t slot,
		     const struct wire_checkpoint *text, const struct recipe_tell *tell)
{
	struct teller *teller = user->tellers[slot];

	if (!teller)
		return 0;
	if (!(text->text_state & WIRE_TEXT_AGAIN))
		teller_use(teller)->cut_texts += text->value > WIRE_TEXT_MAX * WIRE_TEXT_PIECES;
	return user->logs[slot] ? read_text(user->logs[slot], text, tell) : 0;
}

int from_log_text(struct recipe_marker *m, const struct wire_checkpoint *text, struct marking *to)
{
	struct recipe_user *user = recipe_user_of(m, text->h.tgid);
	const struct recipe_tell tell = {marking_mark, to};

	if (!user || user->started_ns != text->h.started_ns)
		return 0;
	if (text->site == WIRE_TEXT_END || text->site == WIRE_TEXT_DEATH) {
		to->died = text->site == WIRE_TEXT_DEATH;
		return recipe_user_over(m, user, to);
	}
	to->begun = &user->begun;
	for (size_t slot = 0; slot < m->n_slots; slot++)
		if (read_slot(user, slot, text, &tell))
			return -1;
	return 0;
}
