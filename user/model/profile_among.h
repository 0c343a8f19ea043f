/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * profile_among.h - a profile that shares the table of processes of a machine. It has no processes
 * of its own, and its main process is the process of its WIRE_START.
 */
#ifndef QPROF_PROFILE_AMONG_H
#define QPROF_PROFILE_AMONG_H

#include "model/processes.h"

/* With ps NULL, the profile has a table of its own. Returns NULL when out of memory. */
struct profile *profile_new_among(const struct profile_config *config, struct processes *ps);
/* The profile keeps at most `max` phases from now on. It keeps those that it has. */
void profile_keep_phases(struct profile *p, size_t max);
size_t profile_n_phases(const struct profile *p);
/* The tree has used at least so much. No effect once WIRE_FINISH has said how much. */
void profile_used(struct profile *p, const struct profile_usage *usage);
/* A process of the machine has ended. The machine's table knows by now what it had used. */
void profile_exit(struct profile *p, const struct process *process,
		  const struct wire_process *event);
/* Comes after profile_finish(). Keeps the phases in few bytes, and nothing that only records need.
 * Until profile_take_out() the profile has no phases; no record may come any more. */
void profile_put_away(struct profile *p);
/* Returns 0, or -ENOMEM: it has no phases yet. */
int profile_take_out(struct profile *p);
/* Returns who hit the last checkpoint, or NULL if there was no room for the process. */
struct process *profile_who(const struct profile *p);

#endif
