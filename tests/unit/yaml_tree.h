/* SPDX-License-Identifier: GPL-2.0-only */
/* yaml_tree.h - YAML, or JSON, read back as a tree that tests look things up in. */
#ifndef QPROF_YAML_TREE_H
#define QPROF_YAML_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <yaml.h>

static inline bool parse(const char *data, size_t len, yaml_document_t *doc)
{
	yaml_parser_t parser;
	int ok;

	assert_int_equal(yaml_parser_initialize(&parser), 1);
	yaml_parser_set_input_string(&parser, (const unsigned char *)data, len);
	ok = yaml_parser_load(&parser, doc);
	if (!ok)
		print_message("%zu bytes: %s, line %zu\n", len, parser.problem,
			      parser.problem_mark.line + 1);
	yaml_parser_delete(&parser);
	return ok;
}

static inline const char *scalar(const yaml_node_t *node)
{
	assert_non_null(node);
	assert_int_equal(node->type, YAML_SCALAR_NODE);
	return (const char *)node->data.scalar.value;
}

static inline size_t size(const yaml_node_t *node)
{
	assert_non_null(node);
	if (node->type == YAML_MAPPING_NODE)
		return (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
	assert_int_equal(node->type, YAML_SEQUENCE_NODE);
	return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

static inline yaml_node_t *item(yaml_document_t *doc, const yaml_node_t *list, size_t i)
{
	assert_true(i < size(list));
	return yaml_document_get_node(doc, list->data.sequence.items.start[i]);
}

static inline const char *key_at(yaml_document_t *doc, const yaml_node_t *map, size_t i)
{
	assert_true(i < size(map));
	return scalar(yaml_document_get_node(doc, map->data.mapping.pairs.start[i].key));
}

/* NULL if there is no such key. */
static inline yaml_node_t *find(yaml_document_t *doc, const yaml_node_t *map, const char *key)
{
	for (size_t i = 0; i < size(map); i++) {
		if (!strcmp(key_at(doc, map, i), key))
			return yaml_document_get_node(doc, map->data.mapping.pairs.start[i].value);
	}
	return NULL;
}

static inline void value_is(yaml_document_t *doc, const yaml_node_t *map, const char *key,
			    const char *expected)
{
	assert_string_equal(scalar(find(doc, map, key)), expected);
}

static inline void keys_are(yaml_document_t *doc, const yaml_node_t *map, const char *const *keys,
			    size_t n)
{
	assert_int_equal(size(map), n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(key_at(doc, map, i), keys[i]);
}

#endif
