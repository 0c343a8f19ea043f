// SPDX-License-Identifier: GPL-2.0-only
#include "bench/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/invoker.h"
#include "format/emit.h"
#include "format/nodes.h"

enum { MAX_TEXT = EMIT_TEXT_MAX, MAX_WORDS = 4096 };

static const char description[] = "bench.yaml", rest[] = ".running-";

char *store_path(const char *folder, const char *name, const char *suffix)
{
	char *path;

	return asprintf(&path, "%s/%s%s", folder, name, suffix) < 0 ? NULL : path;
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

struct reading {
	struct nodes nodes;
	struct bench *b;
};

static int read_texts(struct reading *r, const yaml_node_t *list, char ***texts, size_t *n)
{
	if (!nodes_is_list(list) || !nodes_length(list) || nodes_length(list) > MAX_WORDS)
		return nodes_fail(&r->nodes, list, "is to be a list of words");
	*texts = calloc(nodes_length(list) + 1, sizeof(**texts));
	if (!*texts)
		return nodes_out_of_memory(&r->nodes);
	nodes_each_item (item, list) {
		const yaml_node_t *node = nodes_at(&r->nodes, *item);

		if (!nodes_is_text(node))
			return nodes_fail(&r->nodes, node, "is to be a text");
		(*texts)[*n] = strdup(nodes_text(node));
		if (!(*texts)[(*n)++])
			return nodes_out_of_memory(&r->nodes);
	}
	return 0;
}

/* A list of maps with one key each: the name of a parameter, and its values. */
static int read_parameters(struct reading *r, const yaml_node_t *map)
{
	struct parameters *p = &r->b->parameters;
	struct error err = {0};
	char **values;
	size_t n;
	int failed;

	if (nodes_check_mapping(&r->nodes, map, "parameters"))
		return -1;
	nodes_each_pair (pair, map) {
		const yaml_node_t *name = nodes_at(&r->nodes, pair->key);

		if (!nodes_is_text(name))
			return nodes_fail(&r->nodes, name, "a parameter's name is a text");
		if (parameters_add(p, nodes_text(name), &err))
			return nodes_fail(&r->nodes, name, "%s", err.text);
		values = NULL;
		n = 0;
		failed = read_texts(r, nodes_at(&r->nodes, pair->value), &values, &n);
		for (size_t i = 0; i < n && !failed; i++)
			failed =
				parameters_add_value(p, values[i], strlen(values[i]), r->nodes.err);
		bench_command_free(values);
		if (failed)
			return -1;
	}
	return 0;
}

static int read_number(struct reading *r, const yaml_node_t *node, uint64_t most, uint64_t *number)
{
	char *end;

	if (!nodes_is_text(node))
		return nodes_fail(&r->nodes, node, "is to be a number");
	errno = 0;
	*number = strtoull(nodes_text(node), &end, 10);
	if (errno || *end || end == nodes_text(node) || *number > most)
		return nodes_fail(&r->nodes, node, "'%s' is no number up to %" PRIu64,
				  nodes_show(node).text, most);
	return 0;
}

static int read_member(struct reading *r, const yaml_node_t *key, const yaml_node_t *value)
{
	uint64_t number = 0;
	int failed;

	if (nodes_is_key(key, "command"))
		return read_texts(r, value, &r->b->command, &r->b->n_command);
	if (nodes_is_key(key, "parameters"))
		return read_parameters(r, value);
	if (nodes_is_key(key, "label")) {
		if (!nodes_is_text(value))
			return nodes_fail(&r->nodes, value, "is to be a text");
		r->b->label = strdup(nodes_text(value));
		return r->b->label ? 0 : nodes_out_of_memory(&r->nodes);
	}
	if (nodes_is_key(key, "repeats")) {
		failed = read_number(r, value, BENCH_MAX_REPEATS, &number);
		r->b->repeats = (unsigned int)number;
		return failed;
	}
	if (nodes_is_key(key, "seed"))
		return read_number(r, value, UINT64_MAX, &r->b->seed);
	if (nodes_is_key(key, "shuffled")) {
		r->b->is_shuffled = nodes_yes_or_no(value) == 1;
		return 0;
	}
	return nodes_fail(&r->nodes, key, "unknown key '%s'", nodes_show(key).text);
}

static int read_root(void *context, const yaml_node_t *root)
{
	struct reading *r = context;
	const yaml_node_t *bench = NULL;
	struct error err = {0};

	if (nodes_check_mapping(&r->nodes, root, "a bench"))
		return -1;
	nodes_each_pair (pair, root)
		if (nodes_is_key(nodes_at(&r->nodes, pair->key), "qprof_bench"))
			bench = nodes_at(&r->nodes, pair->value);
	if (!bench || nodes_check_mapping(&r->nodes, bench, "qprof_bench"))
		return nodes_fail(&r->nodes, root, "this is no bench");
	nodes_each_pair (pair, bench)
		if (read_member(r, nodes_at(&r->nodes, pair->key),
				nodes_at(&r->nodes, pair->value)))
			return -1;
	if (!r->b->command || !r->b->repeats)
		return nodes_fail(&r->nodes, bench, "it has no command, or no repeats");
	if (parameters_check(&r->b->parameters, &err))
		return nodes_fail(&r->nodes, bench, "%s", err.text);
	return 0;
}

int store_read(struct bench *b, const char *folder, struct error *err)
{
	char *path = store_path(folder, description, "");
	struct reading r = {.nodes = {.what = "bench", .nothing = "it is empty", .err = err},
			    .b = b};
	int failed;

	*b = (struct bench){0};
	if (!path)
		return error_set(err, "out of memory");
	r.nodes.name = path;
	failed = access(path, F_OK) && errno == ENOENT ? 1 : 0;
	if (!failed && nodes_read_file(&r.nodes, read_root, &r)) {
		bench_free(b);
		failed = -1;
	}
	free(path);
	return failed < 0 ? -1 : !failed;
}

/* ---- Writing ----------------------------------------------------------------------------------
 */

static void emit_parameters(struct emit *e, const struct parameters *p)
{
	emit_plain(e, "parameters");
	emit_map(e, EMIT_BLOCK);
	for (size_t i = 0; i < p->n; i++) {
		emit_text(e, p->items[i].name);
		emit_list(e, EMIT_BLOCK);
		for (size_t k = 0; k < p->items[i].n; k++)
			emit_text(e, p->items[i].values[k]);
		emit_list_end(e);
	}
	emit_map_end(e);
}

static void emit_bench(struct emit *e, const struct bench *b)
{
	emit_comment(e,
		     "What qprof-bpf bench runs here: the same command goes on where it stopped.");
	emit_map(e, EMIT_BLOCK);
	emit_plain(e, "qprof_bench");
	emit_map(e, EMIT_BLOCK);
	emit_plain(e, "command");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < b->n_command; i++)
		emit_text(e, b->command[i]);
	emit_list_end(e);
	if (b->parameters.n)
		emit_parameters(e, &b->parameters);
	if (b->label) {
		emit_plain(e, "label");
		emit_text(e, b->label);
	}
	emit_plain(e, "repeats");
	emit_u64(e, b->repeats);
	emit_plain(e, "shuffled");
	emit_plain(e, b->is_shuffled ? "true" : "false");
	emit_plain(e, "seed");
	emit_u64(e, b->seed);
	emit_map_end(e);
	emit_map_end(e);
	emit_end(e);
}

static int make_folder(const char *folder, struct error *err)
{
	const int as = invoker_enter();
	const int failed = as < 0 ? -as : mkdir(folder, 0755) && errno != EEXIST ? errno : 0;

	if (as >= 0)
		invoker_leave(as);
	return failed ? error_set(err, "cannot make the folder '%s': %s; choose another with -o",
				  folder, strerror(failed))
		      : 0;
}

static int rename_as_invoker(const char *from, const char *to)
{
	const int as = invoker_enter();
	const int failed = as < 0 ? as : rename(from, to) ? -errno : 0;

	if (as >= 0)
		invoker_leave(as);
	return failed;
}

/* The emitter ends what is too long with "...": then the next bench would run something else. */
static int check_texts(const struct bench *b, struct error *err)
{
	for (size_t i = 0; i < b->n_command; i++)
		if (strlen(b->command[i]) > MAX_TEXT / 6)
			return error_set(err,
					 "a word of the command is longer than %d bytes: put "
					 "it into a script",
					 MAX_TEXT / 6);
	return 0;
}

int store_write(const struct bench *b, const char *folder, struct error *err)
{
	char *path = store_path(folder, description, ""),
	     *next = store_path(folder, ".", description);
	struct emit *e = NULL;
	int fd = -1, failed = -1;

	if (!path || !next)
		error_set(err, "out of memory");
	else if (!check_texts(b, err) && !make_folder(folder, err))
		fd = output_open(next, err);
	if (fd >= 0) {
		e = emit_new(fd);
		if (!e) {
			close(fd);
			error_set(err, "out of memory");
		}
	}
	if (e) {
		emit_bench(e, b);
		failed = emit_flush(e);
		emit_free(e);
		if (!failed)
			failed = rename_as_invoker(next, path);
		if (failed)
			error_set(err, "cannot write '%s': %s", path, strerror(-failed));
	}
	free(path);
	free(next);
	return failed ? -1 : 0;
}

/* ---- Runs -------------------------------------------------------------------------------------
 */

/* What a run left that was cut off belongs to no bench. */
static void remove_rests(int fd)
{
	const int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	const struct dirent *entry;
	int as;

	if (!dir) {
		if (again >= 0)
			close(again);
		return;
	}
	as = invoker_enter();
	while ((entry = readdir(dir)))
		if (as >= 0 && !strncmp(entry->d_name, rest, sizeof(rest) - 1))
			unlinkat(fd, entry->d_name, 0);
	if (as >= 0)
		invoker_leave(as);
	closedir(dir);
}

int store_lock(const char *folder, struct error *err)
{
	const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return error_set(err, "cannot open the folder '%s': %s", folder, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		return error_set(err,
				 "another bench runs in '%s': wait for it, or choose another "
				 "folder with -o",
				 folder);
	}
	remove_rests(fd);
	return fd;
}

bool store_has(const char *folder, const struct bench *b, struct bench_run run)
{
	char *name = bench_run_name(b, run);
	char *path = name ? store_path(folder, name, ".yaml") : NULL;
	const bool has = path && !access(path, F_OK);

	free(path);
	free(name);
	return has;
}
