/* SPDX-License-Identifier: GPL-2.0-only */
/* recipe_reader.h - a recipe's document that is being read, for the files that read its parts. */
#ifndef QPROF_RECIPE_READER_H
#define QPROF_RECIPE_READER_H

#include "format/nodes.h"
#include "recipes/recipe_set.h"

struct recipe_reader {
	struct nodes *nodes;
	struct recipes *recipes;
	struct recipe *recipe;
};

/* Copies a text of 1 to max bytes; *to is NULL before, or the key is here twice. */
int recipe_read_text(struct recipe_reader *r, const yaml_node_t *key, const yaml_node_t *node,
		     size_t max, const char **to);

/* Reads the names of files. Returns 0, or -1 and the error. */
int recipe_read_names(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *key,
		      const yaml_node_t *value);

/* Reads the conditions of programs. Returns 0, or -1 and the error. */
int recipe_read_programs(struct recipe_reader *r, struct recipe_item *item,
			 const yaml_node_t *value);

/* Each checks an item whose keys are read, and prepares it. Returns 0, or -1 and the error. */
int recipe_finish_log(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node);
int recipe_finish_python(struct recipe_reader *r, struct recipe_item *item,
			 const yaml_node_t *node);

int recipe_finish_symbol(struct recipe_reader *r, struct recipe_item *item,
			 const yaml_node_t *node);
int recipe_finish_usdt(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node);

/* Reads `name`: a text, or the argument that is the name. The item makes a phase of it. */
int recipe_read_name(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *key,
		     const yaml_node_t *value);
int recipe_finish_file(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node);
int recipe_finish_exec(struct recipe_reader *r, struct recipe_item *item, const yaml_node_t *node);

/* Checks one of the texts of an item. Returns 0, or -1 and the error. */
typedef int (*recipe_check_fn)(struct recipe_reader *r, const struct recipe_item *item,
			       const char *text, const yaml_node_t *node);
/* Checks all that the item has. */
int recipe_check_texts(struct recipe_reader *r, const struct recipe_item *item,
		       recipe_check_fn check, const yaml_node_t *node);

#endif
