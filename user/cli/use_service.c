/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/use_service.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/procfs.h"
#include "recipes/recipe_marker.h"
#include "service/service.h"
#include "service/talk.h"

/* Returns the first option that was given and that no service can do; NULL: none was. */
static const char *beyond_service(const struct run_options *run, const struct capture_options *c)
{
	const struct engine_config *engine = &c->engine;
	const struct {
		bool given;
		const char *option;
	} all[] = {
		{!engine->follow, "--no-follow"},  {engine->max_processes, "--max-processes"},
		{engine->stacks, "--stacks"},	   {engine->windows, "--window"},
		{engine->copies, "--file-copies"}, {engine->max_files, "--max-files"},
		{engine->count_cost, "--cost"},	   {engine->count_splice, "--count-splice"},
		{run->scope, "--scope"},
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
		const struct capture_options *capture, const char **path, struct error *err)
{
	const bool by_itself = !asked && !procfs_may_load() && service_is_at(TALK_PATH);
	const char *option;

	*path = NULL;
	if (asked ? !strcmp(asked, "none") : !by_itself)
		return 0;
	option = beyond_service(run, capture);
	if (option)
		return error_set(err,
				 "%s cannot be had through the service: leave it out, or run this "
				 "as root (sudo)%s",
				 option, by_itself ? "" : " without --service");
	*path = asked ? asked : TALK_PATH;
	return 0;
}

/* ---- What it is to tell ------------------------------------------------------------------------
 */

enum { NO_ITEM = WISH_ITEMS_OF_JOBS /* marks have none: beyond those of recipes */ };

static void add_patterns(struct wish_list *places, const struct texts *patterns)
{
	for (size_t i = 0; i < patterns->n; i++)
		places->wishes[places->n++] = (struct wish){
			.item = NO_ITEM,
			.mark = true,
			.pattern = patterns->items[i],
			.texts = {WIRE_HIT_ARGS, WIRE_HIT_ARGS},
		};
}

/* Returns 0; or -1 and *err: a name that no service takes. */
static int check(const struct wish_list *places, struct error *err)
{
	for (size_t i = 0; i < places->n; i++) {
		const char *c = places->wishes[i].pattern;
		const size_t len = c ? strlen(c) : 0;

		while (c && *c >= ' ' && *c <= '~')
			c++;
		if (!c || *c || len >= TALK_PATTERN_MAX)
			return error_set(err,
					 "'%.60s': a service takes names of at most %d bytes, of "
					 "printable ASCII; for others run this as root (sudo)",
					 places->wishes[i].pattern, TALK_PATTERN_MAX - 1);
	}
	return 0;
}

int use_service_asks(const struct texts *patterns, struct marker *marker, struct service_asks *asks,
		     struct error *err)
{
	struct wish_list *places = &asks->places;
	const size_t of_recipes = marker ? recipe_marker_places(marker, NULL) : 0;
	const size_t n = patterns->n + of_recipes;

	if (n > SOURCE_PLACES_MAX)
		return error_set(
			err,
			"--usdt and --recipe name %zu functions and probes, and a service "
			"takes at most %d of a run: name fewer, or run this as root (sudo)",
			n, SOURCE_PLACES_MAX);
	places->wishes = calloc(n + 1, sizeof(*places->wishes));
	if (!places->wishes)
		return error_set(err, "out of memory");
	add_patterns(places, patterns);
	if (marker) {
		places->n += recipe_marker_places(marker, places->wishes + places->n);
		recipe_marker_asks(marker, &asks->heard);
	}
	return check(places, err);
}
