/* SPDX-License-Identifier: GPL-2.0-only */
/* from_log.c - checkpoints from what a process writes to its stdout and stderr. */
#include <errno.h>
#include <string.h>

#include "capture/capture.h"
#include "recipes/from.h"

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
	for (size_t i = 0; i < recipe->n_items; i++) {
		const struct recipe_item *item = &recipe->items[i];

		if (item->source == RECIPE_LOG &&
		    (!item->literal || !add_literal(how, item->literal)))
			return false;
	}
	return true;
}

static bool has_log(const struct recipe *recipe)
{
	for (size_t i = 0; i < recipe->n_items; i++)
		if (recipe->items[i].source == RECIPE_LOG)
			return true;
	return false;
}

/* Without a literal of each item, or with too many, the kernel side tells of every text. Returns
 * false if no item listens to the log. */
static bool listening_for(const struct recipe_user *user, struct wire_listening *how)
{
	bool any = false, all = true;

	*how = (struct wire_listening){.started_ns = user->started_ns};
	for (size_t slot = 0; slot < RECIPE_SLOTS; slot++) {
		const struct recipe *recipe = user->recipes[slot];

		if (!recipe || !has_log(recipe))
			continue;
		any = true;
		all &= add_literals(how, recipe);
	}
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

void from_log_end(struct capture *c, uint32_t tgid)
{
	engine_stop_listening(c->engine, tgid);
}

static int read_text(struct log_reader *reader, const struct wire_checkpoint *text,
		     const struct recipe_tell *tell)
{
	const unsigned int stream = text->site == 2;

	if (text->text_state & WIRE_TEXT_SKIPPED)
		log_reader_skip(reader, stream, text->text_state & WIRE_TEXT_AT_START);
	if (log_reader_text(reader, stream, text->name, text->name_len, tell))
		return -1;
	/* The end of a long text was left out, and may have ended a line. */
	if (text->value > text->name_len)
		log_reader_skip(reader, stream, false);
	return 0;
}

int from_log_text(struct recipe_marker *m, const struct wire_checkpoint *text, struct marking *to)
{
	const struct recipe_user *user = recipe_user_of(m, text->h.tgid);
	const struct recipe_tell tell = {marking_mark, to};

	for (size_t slot = 0; user && slot < m->n_slots; slot++) {
		struct log_reader *log = user->logs[slot];

		if (user->tellers[slot] && !text->value && teller_end(user->tellers[slot], &tell))
			return -1;
		if (log && text->value && read_text(log, text, &tell))
			return -1;
	}
	return 0;
}
