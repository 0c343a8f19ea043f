/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "audit/rules/rules_listener.h"
#include "base/installed.h"
#include "base/log.h"
#include "cli/audit_options.h"
#include "recipes/recipe_marker.h"

const struct command_option audit_rules_options[] = {
	HEADING("Jobs without checkpoints:"),
	{0, "rules", "FILE",
	 "Take for jobs what these rules match, before the recipes and rules that come with "
	 "qprof-bpf; none: leave those out (repeatable)",
	 OPT_PATHS, INTO(struct rules_options, paths)},
	{0},
};

/* Adds them behind the user's own. Returns 0, or -1 and *err. */
static int add_shipped_rules(struct rules *rules, struct error *err)
{
	char *path = installed_data("qprof-bpf/rules.yaml");
	int code = 0;

	if (path)
		code = rules_read(rules, path, err);
	else
		log_info("share/qprof-bpf/rules.yaml is not installed beside qprof-bpf: jobs "
			 "without checkpoints are recognised by --rules only");
	free(path);
	return code;
}

/* Returns 0 and *shipped: whether what comes with qprof-bpf is to be added; or -1 and *err. */
static int add_own_rules(struct rules_options *chosen, bool *shipped, struct error *err)
{
	*shipped = true;
	for (size_t i = 0; i < chosen->paths.n; i++) {
		if (!strcmp(chosen->paths.items[i], "none"))
			*shipped = false;
		else if (rules_read(chosen->rules, chosen->paths.items[i], err))
			return -1;
	}
	return 0;
}

/* The user's rules, the recipes of tools, the rules that come with qprof-bpf. */
static int add_all(struct rules_options *chosen, struct error *err)
{
	bool shipped;

	chosen->rules = rules_new();
	if (!chosen->rules)
		return error_set(err, "out of memory");
	if (add_own_rules(chosen, &shipped, err) ||
	    chosen_recipes_read(&chosen->recipes, shipped, err))
		return -1;
	if (rules_append(chosen->rules, recipes_rules(chosen->recipes.set, 0)))
		return error_set(err, "out of memory");
	return shipped ? add_shipped_rules(chosen->rules, err) : 0;
}

int audit_rules_listener(struct rules_options *chosen, struct listener **listener,
			 struct marker **marker, struct error *err)
{
	*listener = NULL;
	*marker = NULL;
	if (add_all(chosen, err))
		return -1;
	/* Without recipes, it hears for runs that are served. */
	*marker = recipe_marker_of_jobs(chosen->recipes.set);
	if (!*marker)
		return error_set(err, "out of memory");
	if (!rules_count(chosen->rules) && !(*marker)->listens)
		return 0;
	*listener = rules_listener_new(chosen->rules, *marker);
	return *listener ? 0 : error_set(err, "out of memory");
}

void audit_rules_free(struct rules_options *chosen)
{
	free(chosen->paths.items);
	rules_free(chosen->rules);
	chosen_recipes_free(&chosen->recipes);
}
