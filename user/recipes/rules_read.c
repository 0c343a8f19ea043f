/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads rules from a YAML document. Anything unknown, repeated, empty or too long is an error: a
 * misspelt rule would never match.
 */
#include "recipes/rules_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "base/text.h"

enum {
	SHOWN = 40,	       /* columns of a text in a message */
	MAX_CONDITIONS = 4096, /* of a file */
};

struct reader {
	struct rules *rules;
	const char *name; /* of the file */
	const char *text;
	struct error *err;
	yaml_document_t document;
	size_t conditions; /* read so far: with aliases, a short file has many */
};

static const char *const kind_keys[RULE_KINDS] = {
	[RULE_EXECUTABLE] = "executable",
	[RULE_ARGUMENT] = "arguments",
	[RULE_LIBRARY] = "libraries",
	[RULE_FILE] = "files",
};

/* ---- Messages ---------------------------------------------------------------------------------
 */

static int fail_at(const struct reader *r, size_t line, const char *text)
{
	return error_set(r->err, "rules %s:%zu: %s", r->name, line + 1, text);
}

__attribute__((format(printf, 3, 4))) static int
fail(const struct reader *r, const yaml_node_t *node, const char *format, ...)
{
	char text[sizeof(r->err->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return fail_at(r, node->start_mark.line, text);
}

static int out_of_memory(const struct reader *r)
{
	return error_set(r->err, "rules %s: out of memory", r->name);
}

/* A scalar as a message may show it. */
struct shown {
	char text[SHOWN * TEXT_TERMINAL_GROWTH + 1];
};

static struct shown show(const yaml_node_t *node)
{
	struct shown shown = {""};

	if (node->type == YAML_SCALAR_NODE)
		text_for_terminal(shown.text, sizeof(shown.text),
				  (const char *)node->data.scalar.value, SHOWN);
	return shown;
}

/* ---- Nodes ------------------------------------------------------------------------------------
 */

static yaml_node_t *node_at(struct reader *r, int index)
{
	return yaml_document_get_node(&r->document, index);
}

/* Returns true for a tag of another type: no rule has such values. */
static bool has_own_tag(const yaml_node_t *node)
{
	static const char *const usual[] = {
		[YAML_SCALAR_NODE] = YAML_STR_TAG,
		[YAML_SEQUENCE_NODE] = YAML_SEQ_TAG,
		[YAML_MAPPING_NODE] = YAML_MAP_TAG,
	};

	return strcmp((const char *)node->tag, usual[node->type]) != 0;
}

static bool is_text(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE && !has_own_tag(node) &&
	       strlen((const char *)node->data.scalar.value) == node->data.scalar.length;
}

static const char *text_of(const yaml_node_t *node)
{
	return (const char *)node->data.scalar.value;
}

static bool is_key(const yaml_node_t *node, const char *key)
{
	return is_text(node) && !strcmp(text_of(node), key);
}

/* Checks for a text of 1 to max bytes. Returns 0, or -1 and the error. */
static int check_text(const struct reader *r, const yaml_node_t *node, const char *what, size_t max)
{
	if (!is_text(node))
		return fail(r, node, "%s is to be a text here", what);
	if (!node->data.scalar.length)
		return fail(r, node, "%s is empty: write one, or leave it out", what);
	if (node->data.scalar.length > max)
		return fail(r, node, "%s is longer than %zu bytes: shorten it", what, max);
	return 0;
}

static int check_mapping(const struct reader *r, const yaml_node_t *node, const char *what)
{
	if (node->type == YAML_MAPPING_NODE && !has_own_tag(node))
		return 0;
	return fail(r, node, "%s is to be a mapping of keys to values", what);
}

/* ---- Conditions -------------------------------------------------------------------------------
 */

static int read_pattern(struct reader *r, struct condition *condition, const yaml_node_t *node)
{
	size_t stars = 0;

	if (check_text(r, node, "a pattern", RULES_PATTERN_MAX))
		return -1;
	for (const char *at = text_of(node); *at; at++)
		stars += *at == '*';
	if (stars > RULES_MAX_STARS)
		return fail(r, node, "the pattern '%s' has more than %d '*': use fewer",
			    show(node).text, RULES_MAX_STARS);
	if (condition->n == RULES_MAX_PATTERNS)
		return fail(r, node,
			    "more than %d patterns in one list: make two cases of it under 'any'",
			    RULES_MAX_PATTERNS);
	if (!rules_add_pattern(r->rules, condition, text_of(node), node->data.scalar.length))
		return out_of_memory(r);
	return 0;
}

/* Reads a pattern or a list of patterns. */
static int read_condition(struct reader *r, struct rule_case *c, enum rule_kind kind,
			  const yaml_node_t *node)
{
	struct condition *condition;

	if (node->type == YAML_MAPPING_NODE ||
	    (node->type == YAML_SEQUENCE_NODE &&
	     (has_own_tag(node) ||
	      node->data.sequence.items.start == node->data.sequence.items.top)))
		return fail(r, node, "'%s' is to be a pattern or a list of patterns",
			    kind_keys[kind]);
	if (++r->conditions > MAX_CONDITIONS)
		return fail(r, node, "more than %d conditions in a file", MAX_CONDITIONS);
	condition = rules_add_condition(r->rules, c, kind);
	if (!condition)
		return out_of_memory(r);
	if (node->type == YAML_SCALAR_NODE)
		return read_pattern(r, condition, node);
	for (const yaml_node_item_t *item = node->data.sequence.items.start;
	     item < node->data.sequence.items.top; item++)
		if (read_pattern(r, condition, node_at(r, *item)))
			return -1;
	return 0;
}

/* Returns RULE_KINDS if the key names no condition. */
static enum rule_kind kind_of(const yaml_node_t *key)
{
	unsigned int kind = 0;

	while (kind < RULE_KINDS && !is_key(key, kind_keys[kind]))
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
	return fail(r, key, "'%s' is here twice: leave one, with a list", show(key).text);
}

/* Reads an item of 'any'. */
static int read_case(struct reader *r, struct rule_entry *entry, const yaml_node_t *node)
{
	struct rule_case *c;

	if (check_mapping(r, node, "an item of 'any'"))
		return -1;
	c = rules_add_case(r->rules, entry);
	if (!c)
		return out_of_memory(r);
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = node_at(r, pair->key);
		const enum rule_kind kind = kind_of(key);

		if (kind == RULE_KINDS)
			return fail(r, key,
				    "'%s' is no condition: use executable, arguments, libraries or "
				    "files",
				    show(key).text);
		if (has_kind(c, kind))
			return fail_twice(r, key);
		if (read_condition(r, c, kind, node_at(r, pair->value)))
			return -1;
	}
	return c->n ? 0 : fail(r, node, "an item of 'any' without a condition");
}

static int read_any(struct reader *r, struct rule_entry *entry, const yaml_node_t *node)
{
	if (node->type != YAML_SEQUENCE_NODE || has_own_tag(node) ||
	    node->data.sequence.items.start == node->data.sequence.items.top)
		return fail(r, node, "'any' is to be a list of conditions");
	for (const yaml_node_item_t *item = node->data.sequence.items.start;
	     item < node->data.sequence.items.top; item++)
		if (read_case(r, entry, node_at(r, *item)))
			return -1;
	return 0;
}

/* ---- Rules ------------------------------------------------------------------------------------
 */

static int read_job(const struct reader *r, struct rule *rule, const yaml_node_t *node)
{
	const bool yes = is_key(node, "yes") || is_key(node, "true");

	if (!yes && !is_key(node, "no") && !is_key(node, "false"))
		return fail(r, node, "'job' is to be yes or no");
	rule->job = yes;
	return 0;
}

static int read_name(const struct reader *r, struct rule *rule, const yaml_node_t *node)
{
	if (check_text(r, node, "the name of a rule", sizeof(rule->name) - 1))
		return -1;
	memcpy(rule->name, text_of(node), node->data.scalar.length + 1);
	return 0;
}

/* The keys of a rule so far. */
struct said {
	bool name, job, any, conditions;
};

static int read_rule_key(struct reader *r, struct rule_entry *entry, struct said *said,
			 const yaml_node_t *key, const yaml_node_t *value)
{
	const enum rule_kind kind = kind_of(key);
	struct said before = *said;

	if (is_key(key, "name")) {
		said->name = true;
		return before.name ? fail_twice(r, key) : read_name(r, &entry->rule, value);
	}
	if (is_key(key, "job")) {
		said->job = true;
		return before.job ? fail_twice(r, key) : read_job(r, &entry->rule, value);
	}
	if (kind == RULE_KINDS && !is_key(key, "any"))
		return fail(r, key,
			    "'%s' is no key of a rule: use name, job, any, executable, arguments, "
			    "libraries or files",
			    show(key).text);
	said->any |= kind == RULE_KINDS;
	said->conditions |= kind < RULE_KINDS;
	if (said->any && said->conditions)
		return fail(r, key,
			    "'any' beside conditions: put those into each of its items, or into "
			    "one of their own");
	if (kind == RULE_KINDS)
		return before.any ? fail_twice(r, key) : read_any(r, entry, value);
	if (!entry->n && !rules_add_case(r->rules, entry))
		return out_of_memory(r);
	return has_kind(&entry->cases[0], kind) ? fail_twice(r, key)
						: read_condition(r, &entry->cases[0], kind, value);
}

static int read_rule(struct reader *r, const yaml_node_t *node)
{
	struct said said = {0};
	struct rule_entry *entry;

	if (check_mapping(r, node, "a rule"))
		return -1;
	if (rules_count(r->rules) == RULES_MAX)
		return fail(r, node, "more than %d rules", RULES_MAX);
	entry = rules_add(r->rules);
	if (!entry)
		return out_of_memory(r);
	entry->rule.job = true;
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++)
		if (read_rule_key(r, entry, &said, node_at(r, pair->key), node_at(r, pair->value)))
			return -1;
	if (!said.name)
		return fail(r, node, "a rule without a name: add 'name: ...'");
	if (!entry->n)
		return fail(r, node,
			    "the rule '%s' has no condition: add executable, arguments, libraries, "
			    "files or any",
			    entry->rule.name);
	return 0;
}

static int read_rules(struct reader *r, const yaml_node_t *root)
{
	const yaml_node_pair_t *pairs = root->data.mapping.pairs.start;
	const yaml_node_t *list;

	if (check_mapping(r, root, "the file"))
		return -1;
	if (root->data.mapping.pairs.top != pairs + 1 || !is_key(node_at(r, pairs->key), "rules"))
		return fail(r, root, "the file is to have one key, 'rules'");
	list = node_at(r, pairs->value);
	if (list->type != YAML_SEQUENCE_NODE || has_own_tag(list))
		return fail(r, list, "'rules' is to be a list of rules");
	for (const yaml_node_item_t *item = list->data.sequence.items.start;
	     item < list->data.sequence.items.top; item++)
		if (read_rule(r, node_at(r, *item)))
			return -1;
	return 0;
}

/* ---- Documents and files ----------------------------------------------------------------------
 */

/* For bytes that are no text, the parser gives an offset instead of a line. */
static size_t line_of_problem(const struct reader *r, const yaml_parser_t *yaml)
{
	size_t line = 0;

	if (yaml->error != YAML_READER_ERROR)
		return yaml->problem_mark.line;
	for (size_t i = 0; i < yaml->problem_offset; i++)
		line += r->text[i] == '\n';
	return line;
}

static int syntax_error(const struct reader *r, const yaml_parser_t *yaml)
{
	if (yaml->error == YAML_MEMORY_ERROR)
		return out_of_memory(r);
	return fail_at(r, line_of_problem(r, yaml), yaml->problem ? yaml->problem : "no YAML");
}

/* Refuses a second document, which would go unread. */
static int refuse_more(struct reader *r, yaml_parser_t *yaml)
{
	const yaml_node_t *root;
	yaml_document_t more;
	int err = 0;

	if (!yaml_parser_load(yaml, &more))
		return syntax_error(r, yaml);
	root = yaml_document_get_root_node(&more);
	if (root)
		err = fail(r, root, "a second document: put all rules into one");
	yaml_document_delete(&more);
	return err;
}

static int read_document(struct reader *r, yaml_parser_t *yaml)
{
	const yaml_node_t *root;
	int err;

	if (!yaml_parser_load(yaml, &r->document))
		return syntax_error(r, yaml);
	root = yaml_document_get_root_node(&r->document);
	err = root ? read_rules(r, root) : fail_at(r, 0, "there are no rules: begin with 'rules:'");
	yaml_document_delete(&r->document);
	return err || !root ? -1 : refuse_more(r, yaml);
}

int rules_parse(struct rules *rules, const char *name, const char *text, size_t len,
		struct error *err)
{
	struct reader r = {.rules = rules, .name = name, .text = text, .err = err};
	yaml_parser_t yaml;
	int code;

	if (!yaml_parser_initialize(&yaml))
		return out_of_memory(&r);
	yaml_parser_set_input_string(&yaml, (const unsigned char *)text, len);
	code = read_document(&r, &yaml);
	yaml_parser_delete(&yaml);
	return code;
}

/* Reads a whole regular file. Any other may never end, or never begin. */
static ssize_t read_file(int fd, char *text, size_t size)
{
	struct stat st;
	size_t have = 0;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	while ((n = read(fd, text + have, size - have)) > 0)
		have += (size_t)n;
	if (n < 0)
		return -errno;
	return have == size ? -EFBIG : (ssize_t)have;
}

static const char *why(int code)
{
	switch (code) {
	case EINVAL:
		return "it is no regular file";
	case EFBIG:
		return "it is longer than 256 KiB";
	default:
		return strerror(code);
	}
}

int rules_read(struct rules *rules, const char *path, struct error *err)
{
	char *text = malloc(RULES_FILE_MAX + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t len = fd < 0 ? -errno : !text ? -ENOMEM : read_file(fd, text, RULES_FILE_MAX + 1);
	int code;

	if (fd >= 0)
		close(fd);
	code = len < 0 ? error_set(err, "cannot read the rules '%s': %s", path, why((int)-len))
		       : rules_parse(rules, path, text, (size_t)len, err);
	free(text);
	return code;
}
