/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/chosen_recipes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/installed.h"
#include "base/log.h"
#include "kernel/procfs_aside.h"
#include "recipes/recipe_marker.h"

enum { WORDS_BYTES = 4096 }; /* of a process, that recipes are held against */

const struct command_option chosen_recipes_options[] = {
	{0, "recipe", "NAME|FILE",
	 "Make checkpoints of a tool's output by this recipe, before those that come with "
	 "qprof-bpf; none: leave those out (repeatable)",
	 OPT_PATHS, INTO(struct recipes_options, names)},
	{0},
};

/* A name has no slash and no suffix: it is a file of ours. */
static int read_named(struct recipes *set, const char *name, struct error *err)
{
	char file[128], *path;
	int code;

	if (strchr(name, '/') || strstr(name, ".yaml") || strstr(name, ".yml"))
		return recipes_read(set, name, err);
	snprintf(file, sizeof(file), "qprof-bpf/recipes/%s.yaml", name);
	path = installed_data(file);
	if (!path)
		return error_set(err,
				 "--recipe %s: no recipe of that name comes with qprof-bpf; "
				 "'qprof-bpf recipes' lists them, a file's name has a '/' or ends "
				 "in .yaml",
				 name);
	code = recipes_read(set, path, err);
	free(path);
	return code;
}

static int read_asked(struct recipes_options *chosen, struct error *err)
{
	chosen->set = recipes_new();
	if (!chosen->set)
		return error_set(err, "out of memory");
	for (size_t i = 0; i < chosen->names.n; i++)
		if (strcmp(chosen->names.items[i], "none") != 0 &&
		    read_named(chosen->set, chosen->names.items[i], err))
			return -1;
	recipes_mark_asked(chosen->set);
	return 0;
}

/* Returns the directory of those that come with qprof-bpf, allocated; NULL: they are left out, or
 * are not there. */
static char *shipped_directory(struct recipes_options *chosen)
{
	char *path;

	for (size_t i = 0; i < chosen->names.n; i++)
		if (!strcmp(chosen->names.items[i], "none"))
			return NULL;
	path = installed_data("qprof-bpf/recipes");
	chosen->not_installed = !path;
	return path;
}

int chosen_recipes_read(struct recipes_options *chosen, bool shipped, struct error *err)
{
	char *directory;
	int code;

	if (read_asked(chosen, err))
		return -1;
	directory = shipped ? shipped_directory(chosen) : NULL;
	code = directory ? recipes_read_all(chosen->set, directory, err) : 0;
	free(directory);
	return code;
}

/* Splits what /proc says of a process's words. Returns false if it says nothing. */
static bool read_words(uint32_t pid, char text[WORDS_BYTES], char *words[WORDS_BYTES])
{
	const ssize_t len = procfs_aside_cmdline((pid_t)pid, text, WORDS_BYTES - 1);
	size_t n = 0;

	if (len <= 0)
		return false;
	text[len] = '\0';
	for (char *at = text; at < text + len; at += strlen(at) + 1)
		words[n++] = at;
	words[n] = NULL;
	return true;
}

/* words: NULL if they are not known. */
static void expect(struct engine_config *engine, struct marker *marker, char *const *words)
{
	engine->listens |= !words || recipe_marker_expects(marker, words, RECIPE_LOG);
	engine->watches |= !words || recipe_marker_expects(marker, words, RECIPE_FILE);
	engine->items |= !words || recipe_marker_expects(marker, words, RECIPE_SYMBOL) ||
			 recipe_marker_expects(marker, words, RECIPE_USDT);
}

/*
 * A process that runs, or a descendant of it, may be of a tool, too, if its words do not say so:
 * what that takes is loaded when it is met.
 */
static void expect_processes(struct engine_config *engine, struct marker *marker,
			     const struct run_options *run)
{
	static char text[WORDS_BYTES], *words[WORDS_BYTES];

	for (size_t i = 0; i < run->n_pids; i++)
		expect(engine, marker, read_words(run->pids[i], text, words) ? words : NULL);
	procfs_aside_end();
}

int chosen_recipes_marker(struct recipes_options *chosen, const struct run_options *run,
			  struct capture_options *capture, struct error *err)
{
	struct engine_config *engine = &capture->engine;
	struct marker *marker;

	if (chosen_recipes_read(chosen, true, err))
		return -1;
	if (!recipes_count(chosen->set))
		return 0;
	marker = recipe_marker_new(chosen->set);
	if (!marker)
		return error_set(err, "out of memory");
	capture->marker = marker;
	if (run->command)
		expect(engine, marker, run->command);
	else
		expect_processes(engine, marker, run);
	return 0;
}

int chosen_recipes_served(struct recipes_options *chosen, struct capture_options *capture,
			  struct error *err)
{
	char *directory;
	bool some;

	if (read_asked(chosen, err))
		return -1;
	directory = shipped_directory(chosen);
	some = directory || recipes_count(chosen->set);
	if (some)
		capture->marker = directory ? recipe_marker_reading(chosen->set, directory)
					    : recipe_marker_new(chosen->set);
	free(directory);
	return !some || capture->marker ? 0 : error_set(err, "out of memory");
}

void chosen_recipes_tell(const struct recipes_options *chosen)
{
	if (chosen->not_installed)
		log_info("share/qprof-bpf/recipes is not installed beside qprof-bpf: programs "
			 "without marks have no phases but by --recipe");
}

void chosen_recipes_free(struct recipes_options *chosen)
{
	free(chosen->names.items);
	recipes_free(chosen->set);
}
