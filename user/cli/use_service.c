/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/use_service.h"

#include <string.h>
#include <unistd.h>

#include "kernel/procfs.h"
#include "service/service.h"
#include "service/talk.h"

/* Names a recipe, and not just that there is to be none. */
static bool names_recipe(const struct texts *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->items[i], "none") != 0)
			return true;
	return false;
}

/* Returns the first option that was given and that no service can do; NULL: none was. */
static const char *beyond_service(const struct run_options *run, const struct capture_options *c,
				  const struct recipes_options *recipes)
{
	const struct engine_config *engine = &c->engine;
	const struct {
		bool given;
		const char *option;
	} all[] = {
		{!engine->follow, "--no-follow"},
		{engine->max_processes, "--max-processes"},
		{engine->stacks, "--stacks"},
		{engine->windows, "--window"},
		{engine->copies, "--file-copies"},
		{engine->max_files, "--max-files"},
		{engine->count_cost, "--cost"},
		{engine->count_splice, "--count-splice"},
		{run->scope, "--scope"},
		{c->n_patterns, "--usdt"},
		{names_recipe(&recipes->names), "--recipe"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].given)
			return all[i].option;
	return NULL;
}

bool use_service_may(void)
{
	return service_is_at(TALK_PATH) && !access(TALK_PATH, W_OK);
}

int use_service(const char *asked, const struct run_options *run,
		const struct capture_options *capture, const struct recipes_options *recipes,
		const char **path, struct error *err)
{
	const bool by_itself = !asked && !procfs_may_load() && service_is_at(TALK_PATH);
	const char *option;

	*path = NULL;
	if (asked ? !strcmp(asked, "none") : !by_itself)
		return 0;
	option = beyond_service(run, capture, recipes);
	if (option)
		return error_set(err,
				 "%s cannot be had through the service: leave it out, or run this "
				 "as root (sudo)%s",
				 option, by_itself ? "" : " without --service");
	*path = asked ? asked : TALK_PATH;
	return 0;
}
