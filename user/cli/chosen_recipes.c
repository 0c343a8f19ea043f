/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/chosen_recipes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/installed.h"
#include "base/log.h"
#include "recipes/recipe_marker.h"

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

static int read_shipped(struct recipes_options *chosen, struct error *err)
{
	char *path = installed_data("qprof-bpf/recipes");
	int code = 0;

	if (path)
		code = recipes_read_all(chosen->set, path, err);
	else
		chosen->not_installed = true;
	free(path);
	return code;
}

int chosen_recipes_read(struct recipes_options *chosen, bool shipped, struct error *err)
{
	chosen->set = recipes_new();
	if (!chosen->set)
		return error_set(err, "out of memory");
	for (size_t i = 0; i < chosen->names.n; i++) {
		if (!strcmp(chosen->names.items[i], "none"))
			shipped = false;
		else if (read_named(chosen->set, chosen->names.items[i], err))
			return -1;
	}
	recipes_mark_asked(chosen->set);
	return shipped ? read_shipped(chosen, err) : 0;
}

/* What runs already may be of any tool. */
static bool expects_places(const struct recipes *set, struct marker *marker, char *const *command)
{
	for (size_t i = 0; !command && i < recipes_count(set); i++)
		if (recipe_has(recipes_at(set, i), RECIPE_SYMBOL) ||
		    recipe_has(recipes_at(set, i), RECIPE_USDT))
			return true;
	return command && (recipe_marker_expects(marker, command, RECIPE_SYMBOL) ||
			   recipe_marker_expects(marker, command, RECIPE_USDT));
}

int chosen_recipes_marker(struct recipes_options *chosen, char *const *command,
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
	engine->listens = !command || recipe_marker_expects(marker, command, RECIPE_LOG);
	engine->watches = !command || recipe_marker_expects(marker, command, RECIPE_FILE);
	engine->items = expects_places(chosen->set, marker, command);
	return 0;
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
