/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads rules from a YAML document. Anything unknown, repeated, empty or too long is an error: a
 * misspelt rule would never match.
 */
#include "recipes/rules_set.h"

#include <stdio.h>
#include <string.h>

#include "format/nodes.h"

enum { MAX_CONDITIONS = 4096 /* of a file */ };

struct reader {
	struct nodes *nodes;
	struct rules *rules;
	size_t conditions; /* read so far: with aliases, a short file has many */
};

static const char conditions[] = "use executable, arguments, libraries, files or modules";

static const char *const kind_keys[RULE_KINDS] = {
	[RULE_EXECUTABLE] = "executable", [RULE_ARGUMENT] = "arguments",
	[RULE_LIBRARY] = "libraries",	  [RULE_FILE] = "files",
	[RULE_MODULE] = "modules",
};

/* ---- Conditions -------------------------------------------------------------------------------
 */

static int read_pattern(struct reader *r, struct condition *condition, const yaml_node_t *node)
{
	size_t stars = 0;

	if (nodes_check_text(r->nodes, node, "a pattern", RULES_PATTERN_MAX))
		return -1;
	for (const char *at = nodes_text(node); *at; at++)
		stars += *at == '*';
	if (stars > RULES_MAX_STARS)
		return nodes_fail(r->nodes, node,
				  "the pattern '%s' has more than %d '*': use fewer",
				  nodes_show(node).text, RULES_MAX_STARS);
	if (condition->n == RULES_MAX_PATTERNS)
		return nodes_fail(
			r->nodes, node,
			"more than %d patterns in one list: make two cases of it under 'any'",
			RULES_MAX_PATTERNS);
	if (!rules_add_pattern(r->rules, condition, nodes_text(node), node->data.scalar.length))
		return nodes_out_of_memory(r->nodes);
	return 0;
}

/* Reads a pattern or a list of patterns. */
static int read_condition(struct reader *r, struct rule_case *c, enum rule_kind kind,
			  const yaml_node_t *node)
{
	struct condition *condition;

	if (node->type == YAML_MAPPING_NODE ||
	    (node->type == YAML_SEQUENCE_NODE && (!nodes_is_list(node) || !nodes_length(node))))
		return nodes_fail(r->nodes, node, "'%s' is to be a pattern or a list of patterns",
				  kind_keys[kind]);
	if (++r->conditions > MAX_CONDITIONS)
		return nodes_fail(r->nodes, node, "more than %d conditions in a file",
				  MAX_CONDITIONS);
	condition = rules_add_condition(r->rules, c, kind);
	if (!condition)
		return nodes_out_of_memory(r->nodes);
	if (node->type == YAML_SCALAR_NODE)
		return read_pattern(r, condition, node);
	nodes_each_item (item, node)
		if (read_pattern(r, condition, nodes_at(r->nodes, *item)))
			return -1;
	return 0;
}

/* Returns RULE_KINDS if the key names no condition. */
static enum rule_kind kind_of(const yaml_node_t *key)
{
	unsigned int kind = 0;

	while (kind < RULE_KINDS && !nodes_is_key(key, kind_keys[kind]))
		kind++;
	return kind;
}

static bool has_kind(const struct rule_case *c, enum rule_kind kind)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->conditions[i].kind == kind)
			return true;
	return false;
}

static int fail_twice(const struct reader *r, const yaml_node_t *key)
{
	return nodes_fail(r->nodes, key, "'%s' is here twice: leave one, with a list",
			  nodes_show(key).text);
}

/* Reads an item of 'any'. */
static int read_case(struct reader *r, struct rule_entry *entry, const yaml_node_t *node)
{
	struct rule_case *c;

	if (nodes_check_mapping(r->nodes, node, "an item of 'any'"))
		return -1;
	c = rules_add_case(r->rules, entry);
	if (!c)
		return nodes_out_of_memory(r->nodes);
	nodes_each_pair (pair, node) {
		const yaml_node_t *key = nodes_at(r->nodes, pair->key);
		const enum rule_kind kind = kind_of(key);

		if (kind == RULE_KINDS)
			return nodes_fail(r->nodes, key, "'%s' is no condition: %s",
					  nodes_show(key).text, conditions);
		if (has_kind(c, kind))
			return fail_twice(r, key);
		if (read_condition(r, c, kind, nodes_at(r->nodes, pair->value)))
			return -1;
	}
	return c->n ? 0 : nodes_fail(r->nodes, node, "an item of 'any' without a condition");
}

static int read_any(struct reader *r, struct rule_entry *entry, const yaml_node_t *node)
{
	if (!nodes_is_list(node) || !nodes_length(node))
		return nodes_fail(r->nodes, node, "'any' is to be a list of conditions");
	nodes_each_item (item, node)
		if (read_case(r, entry, nodes_at(r->nodes, *item)))
			return -1;
	return 0;
}

/* The keys of a rule so far. */
struct said {
	bool name, job, any, conditions;
};

/* Reads 'any' or a condition. */
static int read_match_key(struct reader *r, struct rule_entry *entry, struct said *said,
			  const yaml_node_t *key, const yaml_node_t *value)
{
	const enum rule_kind kind = kind_of(key);
	const bool any = said->any;

	said->any |= kind == RULE_KINDS;
	said->conditions |= kind < RULE_KINDS;
	if (said->any && said->conditions)
		return nodes_fail(
			r->nodes, key,
			"'any' beside conditions: put those into each of its items, or into "
			"one of their own");
	if (kind == RULE_KINDS)
		return any ? fail_twice(r, key) : read_any(r, entry, value);
	if (!entry->n && !rules_add_case(r->rules, entry))
		return nodes_out_of_memory(r->nodes);
	return has_kind(&entry->cases[0], kind) ? fail_twice(r, key)
						: read_condition(r, &entry->cases[0], kind, value);
}

int rules_read_match(struct rules *rules, const char *name, struct nodes *nodes,
		     const yaml_node_t *match)
{
	struct reader r = {.nodes = nodes, .rules = rules};
	struct rule_entry *entry;
	struct said said = {0};

	if (nodes_check_mapping(nodes, match, "'match'"))
		return -1;
	entry = rules_add(rules);
	if (!entry)
		return nodes_out_of_memory(nodes);
	snprintf(entry->rule.name, sizeof(entry->rule.name), "%s", name);
	entry->rule.job = true;
	nodes_each_pair (pair, match) {
		const yaml_node_t *key = nodes_at(nodes, pair->key);

		if (kind_of(key) == RULE_KINDS && !nodes_is_key(key, "any"))
			return nodes_fail(nodes, key, "'%s' is no condition: %s",
					  nodes_show(key).text, conditions);
		if (read_match_key(&r, entry, &said, key, nodes_at(nodes, pair->value)))
			return -1;
	}
	return entry->n ? 0 : nodes_fail(nodes, match, "'match' has no condition");
}

/* ---- Rules ------------------------------------------------------------------------------------
 */

static int read_job(const struct reader *r, struct rule *rule, const yaml_node_t *node)
{
	const int yes = nodes_yes_or_no(node);

	if (yes < 0)
		return nodes_fail(r->nodes, node, "'job' is to be yes or no");
	rule->job = yes;
	return 0;
}

static int read_name(const struct reader *r, struct rule *rule, const yaml_node_t *node)
{
	if (nodes_check_text(r->nodes, node, "the name of a rule", sizeof(rule->name) - 1))
		return -1;
	memcpy(rule->name, nodes_text(node), node->data.scalar.length + 1);
	return 0;
}

static int read_rule_key(struct reader *r, struct rule_entry *entry, struct said *said,
			 const yaml_node_t *key, const yaml_node_t *value)
{
	const struct said before = *said;

	if (nodes_is_key(key, "name")) {
		said->name = true;
		return before.name ? fail_twice(r, key) : read_name(r, &entry->rule, value);
	}
	if (nodes_is_key(key, "job")) {
		said->job = true;
		return before.job ? fail_twice(r, key) : read_job(r, &entry->rule, value);
	}
	if (kind_of(key) == RULE_KINDS && !nodes_is_key(key, "any"))
		return nodes_fail(
			r->nodes, key,
			"'%s' is no key of a rule: use name, job, any, executable, arguments, "
			"libraries, files or modules",
			nodes_show(key).text);
	return read_match_key(r, entry, said, key, value);
}

static int read_rule(struct reader *r, const yaml_node_t *node)
{
	struct said said = {0};
	struct rule_entry *entry;

	if (nodes_check_mapping(r->nodes, node, "a rule"))
		return -1;
	if (rules_count(r->rules) == RULES_MAX)
		return nodes_fail(r->nodes, node, "more than %d rules", RULES_MAX);
	entry = rules_add(r->rules);
	if (!entry)
		return nodes_out_of_memory(r->nodes);
	entry->rule.job = true;
	nodes_each_pair (pair, node)
		if (read_rule_key(r, entry, &said, nodes_at(r->nodes, pair->key),
				  nodes_at(r->nodes, pair->value)))
			return -1;
	if (!said.name)
		return nodes_fail(r->nodes, node, "a rule without a name: add 'name: ...'");
	if (!entry->n)
		return nodes_fail(
			r->nodes, node,
			"the rule '%s' has no condition: add executable, arguments, libraries, "
			"files or any",
			entry->rule.name);
	return 0;
}

static int read_rules(void *context, const yaml_node_t *root)
{
	struct reader *r = context;
	const yaml_node_pair_t *pairs = root->data.mapping.pairs.start;
	const yaml_node_t *list;

	if (nodes_check_mapping(r->nodes, root, "the file"))
		return -1;
	if (root->data.mapping.pairs.top != pairs + 1 ||
	    !nodes_is_key(nodes_at(r->nodes, pairs->key), "rules"))
		return nodes_fail(r->nodes, root, "the file is to have one key, 'rules'");
	list = nodes_at(r->nodes, pairs->value);
	if (!nodes_is_list(list))
		return nodes_fail(r->nodes, list, "'rules' is to be a list of rules");
	nodes_each_item (item, list)
		if (read_rule(r, nodes_at(r->nodes, *item)))
			return -1;
	return 0;
}

static struct nodes rules_nodes(const char *name, struct error *err)
{
	return (struct nodes){
		.what = "rules",
		.nothing = "there are no rules: begin with 'rules:'",
		.name = name,
		.err = err,
	};
}

int rules_parse(struct rules *rules, const char *name, const char *text, size_t len,
		struct error *err)
{
	struct nodes nodes = rules_nodes(name, err);
	struct reader r = {.nodes = &nodes, .rules = rules};

	return nodes_parse(&nodes, text, len, read_rules, &r);
}

int rules_read(struct rules *rules, const char *path, struct error *err)
{
	struct nodes nodes = rules_nodes(path, err);
	struct reader r = {.nodes = &nodes, .rules = rules};

	return nodes_read_file(&nodes, read_rules, &r);
}
