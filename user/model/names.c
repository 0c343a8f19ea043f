/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/names.h"

#include <stdlib.h>
#include <string.h>

static const char unreadable[] = "(unreadable name)";
static const char empty[] = "(empty name)";

static void read_raw(const struct profile_config *config, const struct wire_checkpoint *cp,
		     struct profile_name *name)
{
	const char *site = NULL;

	name->raw = cp->name;
	name->raw_len = cp->name_len;
	switch ((enum wire_name)cp->name_state) {
	case WIRE_NAME_OK:
		if (cp->text_state & WIRE_TEXT_RENAMES)
			name->raw_len = strnlen(cp->name, cp->name_len);
		break;
	case WIRE_NAME_CUT:
		name->cut = true;
		name->raw_len = text_whole(cp->name, cp->name_len);
		break;
	case WIRE_NAME_SITE:
		if (config->site_name)
			site = config->site_name(config->context, cp->site);
		if (site) {
			name->raw = site;
			name->raw_len = strlen(site);
			break;
		}
		/* fall through */
	case WIRE_NAME_UNREADABLE:
		name->unreadable = true;
		name->raw = unreadable;
		name->raw_len = sizeof(unreadable) - 1;
		break;
	}
}

void name_read(const struct profile_config *config, const struct wire_checkpoint *cp,
	       struct profile_name *name, char *text)
{
	*name = (struct profile_name){.text = text};
	read_raw(config, cp, name);
	if (name->raw_len == 0)
		memcpy(text, empty, sizeof(empty));
	else
		text_repair(text, NAME_TEXT_MAX, name->raw, name->raw_len, &name->invalid_utf8);
}

bool name_read_new(const struct wire_checkpoint *cp, struct profile_name *name, char *text)
{
	const size_t before = strnlen(cp->name, cp->name_len) + 1;

	if (!(cp->text_state & WIRE_TEXT_RENAMES) || before >= cp->name_len)
		return false;
	*name = (struct profile_name){
		.raw = cp->name + before,
		.raw_len = cp->name_len - before,
		.text = text,
	};
	text_repair(text, NAME_TEXT_MAX, name->raw, name->raw_len, &name->invalid_utf8);
	return true;
}

const struct interned *names_find(const struct names *names, const struct profile_name *name)
{
	struct interned *found;

	HASH_FIND(hh, names->by_raw, name->raw, name->raw_len, found);
	return found;
}

const struct interned *names_intern(struct names *names, const struct profile_name *name)
{
	const struct interned *found = names_find(names, name);
	size_t text_size = strlen(name->text) + 1;
	struct interned *new;
	char *text;

	if (found)
		return found;
	new = calloc(1, sizeof(*new) + name->raw_len + text_size);
	if (!new)
		return NULL;
	text = new->raw + name->raw_len;
	memcpy(new->raw, name->raw, name->raw_len);
	memcpy(text, name->text, text_size);
	new->text = text;
	HASH_ADD_KEYPTR(hh, names->by_raw, new->raw, name->raw_len, new);
	if (new->hh.tbl)
		return new;
	free(new);
	return NULL;
}

void names_free(struct names *names)
{
	struct interned *name = names->by_raw, *next;

	/* HASH_CLEAR frees the table; its elements stay chained. */
	HASH_CLEAR(hh, names->by_raw);
	for (; name; name = next) {
		next = name->hh.next;
		free(name);
	}
}
