/* SPDX-License-Identifier: GPL-2.0-only */
/* chosen_recipes.h - which recipes a run or an audit uses: those that --recipe names, then those
 * that come with qprof-bpf. */
#ifndef QPROF_CHOSEN_RECIPES_H
#define QPROF_CHOSEN_RECIPES_H

#include "capture/capture.h"
#include "capture/run.h"
#include "cli/options.h"
#include "recipes/recipe.h"

struct recipes_options {
	struct texts names; /* of --recipe */
	struct recipes *set;
	bool not_installed; /* those that come with qprof-bpf are not there */
};

/* Of a struct recipes_options. */
extern const struct command_option chosen_recipes_options[];

/* Fills in the set; shipped: with those that come with qprof-bpf, unless --recipe none leaves them
 * out. Returns 0, or -1 and *err. */
int chosen_recipes_read(struct recipes_options *chosen, bool shipped, struct error *err);
/*
 * Of a run: sets its marker, NULL if there is no recipe, and what the kernel side is to expect of a
 * command or of processes that one recognises by their words. Returns 0, or -1 and *err.
 */
int chosen_recipes_marker(struct recipes_options *chosen, const struct run_options *run,
			  struct capture_options *capture, struct error *err);
/* Of a run that is served: sets its marker, NULL if there is no recipe. The command does not wait
 * for the recipes that come with qprof-bpf to be read before the service is asked, which has its
 * own. Returns 0, or -1 and *err. */
int chosen_recipes_served(struct recipes_options *chosen, struct capture_options *capture,
			  struct error *err);
/* Says, afterwards, which recipes it did without. */
void chosen_recipes_tell(const struct recipes_options *chosen);
void chosen_recipes_free(struct recipes_options *chosen);

#endif
