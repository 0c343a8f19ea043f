/* SPDX-License-Identifier: GPL-2.0-only */
/* rules_set.h - a set of rules, which rules_read.c builds and rules.c matches. */
#ifndef QPROF_RULES_SET_H
#define QPROF_RULES_SET_H

#include "base/arena.h"
#include "format/nodes.h"
#include "recipes/rules.h"

struct pattern {
	const char *text;
	size_t len, prefix, suffix; /* literal bytes at its ends; all, if it has no wildcards */
	bool whole;		    /* matches whole names, not their last part */
	bool wild;		    /* has wildcards */
	bool ends_decide;	    /* the rest is a single '*' */
	bool anywhere;		    /* literal bytes between two '*', at its ends */
};

struct condition {
	enum rule_kind kind;
	struct pattern *patterns;
	size_t n;
	size_t at; /* among all conditions of the set */
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

/* Each appends one. Returns NULL when out of memory; valid until the next one of its kind. */
struct rule_entry *rules_add(struct rules *r);
struct rule_case *rules_add_case(struct rules *r, struct rule_entry *entry);
struct condition *rules_add_condition(struct rules *r, struct rule_case *c, enum rule_kind kind);
struct pattern *rules_add_pattern(struct rules *r, struct condition *condition, const char *text,
				  size_t len);

/* Appends a rule of that name with the conditions of a mapping. Returns 0, or -1 and the error. */
int rules_read_match(struct rules *rules, const char *name, struct nodes *nodes,
		     const yaml_node_t *match);

#endif
