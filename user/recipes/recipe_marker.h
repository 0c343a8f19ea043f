/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recipe_marker.h - a marker (capture/marker.h) that hears what the processes of known tools write,
 * and makes checkpoints of it.
 *
 * A process is held against the recipes when it executes a program; if one of them asks for
 * libraries, also when it has mapped new code. It waits meanwhile, as for the search for probes. In
 * an audit only the processes of jobs are, and no process waits.
 */
#ifndef QPROF_RECIPE_MARKER_H
#define QPROF_RECIPE_MARKER_H

#include "capture/marker.h"
#include "kernel/wishes.h"
#include "model/machine.h"
#include "recipes/recipe.h"

/* The recipes must outlive it. Returns NULL when out of memory. */
struct marker *recipe_marker_new(struct recipes *recipes);
/* The same, of these and of those in a directory, which are read when it is got ready or has its
 * first record. Until then it knows no more than what to ask a service for. */
struct marker *recipe_marker_reading(struct recipes *recipes, const char *directory);
/* The same of an audit: recipe_marker_meet() says who is recognised, and when. */
struct marker *recipe_marker_of_jobs(struct recipes *recipes);
/* Returns true if a recipe with items of this source recognises this command (NULL-terminated), as
 * far as its words tell. */
bool recipe_marker_expects(struct marker *marker, char *const *command, enum recipe_source source);

/* Of a run that is served: writes what the recipes listen to that the user has named, functions and
 * probes, which the service is to be asked for (others it may have itself); wishes may be NULL.
 * Returns how many there are. */
size_t recipe_marker_places(struct marker *marker, struct wish *wishes);
/* The same of what they listen to by other means. */
void recipe_marker_asks(struct marker *marker, struct source_heard *heard);

/* ---- Of an audit: the processes of jobs -------------------------------------------------------
 */

/* Holds a process of a job against the recipes: as it becomes a part of the job, has executed a
 * program (exec, else NULL), or may be recognised by what it has mapped or open now. */
void recipe_marker_meet(struct marker *marker, const struct profile_process *process,
			const struct wire_process *exec);
/* A process was in the tree of a job when that began; those that it descends from come first. */
void recipe_marker_found(struct marker *marker, const struct profile_process *process);
/* A job has ended: what is left of it is not heard any more. */
void recipe_marker_leave(struct marker *marker, const struct machine *machine,
			 const struct machine_job *job);
/* Returns true if no recipe of a tool has recognised the process yet, and one may. */
bool recipe_marker_wants(struct marker *marker, const struct profile_process *process);

#endif
