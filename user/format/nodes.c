/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Messages ---------------------------------------------------------------------------------
 */

static int fail_at(const struct nodes *n, size_t line, const char *text)
{
	return error_set(n->err, "%s %s:%zu: %s", n->what, n->name, line + 1, text);
}

int nodes_fail(const struct nodes *n, const yaml_node_t *node, const char *format, ...)
{
	char text[sizeof(n->err->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return fail_at(n, node->start_mark.line, text);
}

int nodes_out_of_memory(const struct nodes *n)
{
	return error_set(n->err, "%s %s: out of memory", n->what, n->name);
}

struct nodes_shown nodes_show(const yaml_node_t *node)
{
	struct nodes_shown shown = {""};

	if (node->type == YAML_SCALAR_NODE)
		text_for_terminal(shown.text, sizeof(shown.text), nodes_text(node), NODES_SHOWN);
	return shown;
}

/* ---- Nodes ------------------------------------------------------------------------------------
 */

yaml_node_t *nodes_at(const struct nodes *n, int index)
{
	/* libyaml does not change the document, it only lacks the const. */
	return yaml_document_get_node((yaml_document_t *)&n->document, index);
}

/* Returns true for a tag of another type: no file of ours has such values. */
static bool has_own_tag(const yaml_node_t *node)
{
	static const char *const usual[] = {
		[YAML_SCALAR_NODE] = YAML_STR_TAG,
		[YAML_SEQUENCE_NODE] = YAML_SEQ_TAG,
		[YAML_MAPPING_NODE] = YAML_MAP_TAG,
	};

	return strcmp((const char *)node->tag, usual[node->type]) != 0;
}

bool nodes_is_text(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE && !has_own_tag(node) &&
	       strlen((const char *)node->data.scalar.value) == node->data.scalar.length;
}

const char *nodes_text(const yaml_node_t *node)
{
	return (const char *)node->data.scalar.value;
}

bool nodes_is_key(const yaml_node_t *node, const char *key)
{
	return nodes_is_text(node) && !strcmp(nodes_text(node), key);
}

bool nodes_is_mapping(const yaml_node_t *node)
{
	return node->type == YAML_MAPPING_NODE && !has_own_tag(node);
}

bool nodes_is_list(const yaml_node_t *node)
{
	return node->type == YAML_SEQUENCE_NODE && !has_own_tag(node);
}

size_t nodes_length(const yaml_node_t *list)
{
	return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

int nodes_yes_or_no(const yaml_node_t *node)
{
	if (nodes_is_key(node, "yes") || nodes_is_key(node, "true"))
		return 1;
	return nodes_is_key(node, "no") || nodes_is_key(node, "false") ? 0 : -1;
}

int nodes_check_text(const struct nodes *n, const yaml_node_t *node, const char *what, size_t max)
{
	if (!nodes_is_text(node))
		return nodes_fail(n, node, "%s is to be a text here", what);
	if (!node->data.scalar.length)
		return nodes_fail(n, node, "%s is empty: write one, or leave it out", what);
	if (node->data.scalar.length > max)
		return nodes_fail(n, node, "%s is longer than %zu bytes: shorten it", what, max);
	return 0;
}

int nodes_check_mapping(const struct nodes *n, const yaml_node_t *node, const char *what)
{
	if (nodes_is_mapping(node))
		return 0;
	return nodes_fail(n, node, "%s is to be a mapping of keys to values", what);
}

/* ---- Documents and files ----------------------------------------------------------------------
 */

/* For bytes that are no text, the parser gives an offset instead of a line. */
static size_t line_of_problem(const struct nodes *n, const yaml_parser_t *yaml)
{
	size_t line = 0;

	if (yaml->error != YAML_READER_ERROR)
		return yaml->problem_mark.line;
	for (size_t i = 0; i < yaml->problem_offset; i++)
		line += n->text[i] == '\n';
	return line;
}

static int syntax_error(const struct nodes *n, const yaml_parser_t *yaml)
{
	if (yaml->error == YAML_MEMORY_ERROR)
		return nodes_out_of_memory(n);
	return fail_at(n, line_of_problem(n, yaml), yaml->problem ? yaml->problem : "no YAML");
}

/* Refuses a second document, which would go unread. */
static int refuse_more(const struct nodes *n, yaml_parser_t *yaml)
{
	const yaml_node_t *root;
	yaml_document_t more;
	int err = 0;

	if (!yaml_parser_load(yaml, &more))
		return syntax_error(n, yaml);
	root = yaml_document_get_root_node(&more);
	if (root)
		err = nodes_fail(n, root, "a second document: put all into one");
	yaml_document_delete(&more);
	return err;
}

static int read_document(struct nodes *n, yaml_parser_t *yaml, nodes_read_fn read, void *context)
{
	const yaml_node_t *root;
	int err;

	if (!yaml_parser_load(yaml, &n->document))
		return syntax_error(n, yaml);
	root = yaml_document_get_root_node(&n->document);
	err = root ? read(context, root) : fail_at(n, 0, n->nothing);
	yaml_document_delete(&n->document);
	return err || !root ? -1 : refuse_more(n, yaml);
}

int nodes_parse(struct nodes *n, const char *text, size_t len, nodes_read_fn read, void *context)
{
	yaml_parser_t yaml;
	int code;

	n->text = text;
	if (!yaml_parser_initialize(&yaml))
		return nodes_out_of_memory(n);
	yaml_parser_set_input_string(&yaml, (const unsigned char *)text, len);
	code = read_document(n, &yaml, read, context);
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

int nodes_read_file(struct nodes *n, nodes_read_fn read, void *context)
{
	char *text = malloc(NODES_FILE_MAX + 1);
	int fd = open(n->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t len = fd < 0 ? -errno : !text ? -ENOMEM : read_file(fd, text, NODES_FILE_MAX + 1);
	int code;

	if (fd >= 0)
		close(fd);
	code = len < 0 ? error_set(n->err, "cannot read the %s '%s': %s", n->what, n->name,
				   why((int)-len))
		       : nodes_parse(n, text, (size_t)len, read, context);
	free(text);
	return code;
}
