/* SPDX-License-Identifier: GPL-2.0-only */
/* rules_set.h - a set of rules as rules_read.c builds it and rules.c matches against it. */
#ifndef QPROF_RULES_SET_H
#define QPROF_RULES_SET_H

#include "base/arena.h"
#include "audit/rules/rules.h"

struct pattern {
	const char *text;
	size_t len, prefix, suffix; /* literal bytes at its ends; of one without wildcards: all */
	bool whole;		    /* held against whole names, not only against their last part */
	bool wild;		    /* has wildcards */
	bool ends_decide;	    /* there is one '*' between the ends, and nothing else */
};

struct condition {
	enum rule_kind kind;
	struct pattern *patterns;
	size_t n;
	size_t at; /* counts over all conditions of the set */
};

struct rule_case {
	struct condition *conditions;
	size_t n;
};

struct rule_entry {
	struct rule rule;
	struct rule_case *cases;
	size_t n;
};

struct rules {
	struct arena *arena; /* of all that follows */
	struct rule_entry *entries;
	size_t n, n_conditions;
};

/* Each adds one to what was added last. NULL when out of memory; valid until the next of its kind.
 */
struct rule_entry *rules_add(struct rules *r);
struct rule_case *rules_add_case(struct rules *r, struct rule_entry *entry);
struct condition *rules_add_condition(struct rules *r, struct rule_case *c, enum rule_kind kind);
struct pattern *rules_add_pattern(struct rules *r, struct condition *condition, const char *text,
				  size_t len);

#endif
