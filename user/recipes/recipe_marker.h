/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recipe_marker.h - a marker (capture/marker.h) that hears what the processes of known tools write,
 * and makes checkpoints of it.
 *
 * A process is held against the recipes when it executes a program; if one of them asks for
 * libraries, also when it has mapped new code. It waits meanwhile, as for the search for probes.
 */
#ifndef QPROF_RECIPE_MARKER_H
#define QPROF_RECIPE_MARKER_H

#include "capture/marker.h"
#include "recipes/recipe.h"

/* The recipes must outlive it. Returns NULL when out of memory. */
struct marker *recipe_marker_new(const struct recipes *recipes);
/* Returns true if a recipe recognises this command (NULL-terminated), as far as its words tell. */
bool recipe_marker_expects(struct marker *marker, char *const *command);

#endif
