/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nodes.h - a YAML document that people wrote, node by node, with errors that name file and line.
 *
 * Files are bounded and regular, have one document, and no tags of their own. Functions that return
 * int return 0, or -1 and the error that struct nodes points to.
 */
#ifndef QPROF_NODES_H
#define QPROF_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "base/error.h"
#include "base/text.h"

enum {
	NODES_FILE_MAX = 256 << 10, /* bytes of a file */
	NODES_SHOWN = 40,	    /* columns of a text in a message */
};

struct nodes {
	const char *what;    /* "rules": begins each message */
	const char *nothing; /* the message about an empty file */
	const char *name;    /* of the file */
	struct error *err;
	const char *text;
	yaml_document_t document;
};

/* Reads the root of the document. Returns 0 or -1. */
typedef int (*nodes_read_fn)(void *context, const yaml_node_t *root);

/* Reads a text of len bytes; text, document are set by this. */
int nodes_parse(struct nodes *n, const char *text, size_t len, nodes_read_fn read, void *context);
/* Reads the file n->name. */
int nodes_read_file(struct nodes *n, nodes_read_fn read, void *context);

/* Both return -1. */
int nodes_fail(const struct nodes *n, const yaml_node_t *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int nodes_out_of_memory(const struct nodes *n);

/* A scalar as a message may show it. */
struct nodes_shown {
	char text[NODES_SHOWN * TEXT_TERMINAL_GROWTH + 1];
};
struct nodes_shown nodes_show(const yaml_node_t *node);

yaml_node_t *nodes_at(const struct nodes *n, int index);
/* Returns true for a scalar without a tag of its own and without NUL bytes. */
bool nodes_is_text(const yaml_node_t *node);
const char *nodes_text(const yaml_node_t *node);
bool nodes_is_key(const yaml_node_t *node, const char *key);
bool nodes_is_mapping(const yaml_node_t *node);
bool nodes_is_list(const yaml_node_t *node);
/* Returns how many items a list has. */
size_t nodes_length(const yaml_node_t *list);
/* Returns 1 for yes or true, 0 for no or false, -1 for all else. */
int nodes_yes_or_no(const yaml_node_t *node);
/* Check for a text of 1 to max bytes, and for a mapping. */
int nodes_check_text(const struct nodes *n, const yaml_node_t *node, const char *what, size_t max);
int nodes_check_mapping(const struct nodes *n, const yaml_node_t *node, const char *what);

/* The name of a variable cannot stand in parentheses.
 * NOLINTBEGIN(bugprone-macro-parentheses) */
#define nodes_each_pair(pair, of)                                                                  \
	for (const yaml_node_pair_t *pair = (of)->data.mapping.pairs.start;                        \
	     pair < (of)->data.mapping.pairs.top; pair++)
#define nodes_each_item(item, of)                                                                  \
	for (const yaml_node_item_t *item = (of)->data.sequence.items.start;                       \
	     item < (of)->data.sequence.items.top; item++)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
