/* SPDX-License-Identifier: GPL-2.0-only */
/* summaries.h - what programs say of the whole run: values by name, and what metrics mean. */
#ifndef QPROF_SUMMARIES_H
#define QPROF_SUMMARIES_H

#include "model/names.h"

struct summaries {
	struct profile_metric *list;
	size_t n, cap;
	const char **definitions;
	size_t n_definitions, definitions_cap;
};

/* The last value of a name counts. Returns false when full or out of memory. */
bool summaries_set(struct summaries *s, const struct interned *name,
		   const struct profile_metric *value);
/* Equal definitions count once. Returns false when full or out of memory. */
bool summaries_define(struct summaries *s, const struct interned *definition);
void summaries_free(struct summaries *s);

#endif
