/* SPDX-License-Identifier: GPL-2.0-only */
/* run_recipes.h - which recipes a run uses: those that --recipe names, then those that come with
 * qprof-bpf. */
#ifndef QPROF_RUN_RECIPES_H
#define QPROF_RUN_RECIPES_H

#include "capture/marker.h"
#include "cli/options.h"
#include "recipes/recipe.h"

struct recipes_options {
	struct texts names; /* of --recipe */
	struct recipes *set;
	bool not_installed; /* those that come with qprof-bpf are not there */
};

/* Of a struct recipes_options. */
extern const struct command_option run_recipes_options[];

/*
 * Returns 0, and *marker: NULL if there is no recipe; or -1 and *err. Sets *expected to whether one
 * recognises the command, or may recognise what runs already (NULL).
 */
int run_recipes_marker(struct recipes_options *chosen, char *const *command, struct marker **marker,
		       bool *expected, struct error *err);
/* Says, after a run, which recipes it did without. */
void run_recipes_tell(const struct recipes_options *chosen);
void run_recipes_free(struct recipes_options *chosen);

#endif
