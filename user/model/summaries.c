/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/summaries.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

bool summaries_set(struct summaries *s, const struct interned *name,
		   const struct profile_metric *value)
{
	void *list;

	for (size_t i = 0; i < s->n; i++) {
		if (s->list[i].name == name->text) {
			s->list[i] = *value;
			s->list[i].name = name->text;
			return true;
		}
	}
	if (s->n == PROFILE_MAX_SUMMARIES)
		return false;
	list = array_reserve(s->list, s->n, &s->cap, sizeof(*s->list));
	if (!list)
		return false;
	s->list = list;
	s->list[s->n] = *value;
	s->list[s->n++].name = name->text;
	return true;
}

bool summaries_define(struct summaries *s, const struct interned *definition)
{
	void *list;

	for (size_t i = 0; i < s->n_definitions; i++) {
		if (s->definitions[i] == definition->text)
			return true;
	}
	if (s->n_definitions == PROFILE_MAX_SUMMARIES)
		return false;
	list = array_reserve(s->definitions, s->n_definitions, &s->definitions_cap,
			     sizeof(*s->definitions));
	if (!list)
		return false;
	s->definitions = list;
	s->definitions[s->n_definitions++] = definition->text;
	return true;
}

void summaries_free(struct summaries *s)
{
	free(s->list);
	free(s->definitions);
}
