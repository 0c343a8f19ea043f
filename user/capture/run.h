/* SPDX-License-Identifier: GPL-2.0-only */
/* run.h - a run: the capture of a command, or of processes that run already, and their descendants.
 */
#ifndef QPROF_RUN_H
#define QPROF_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/capture.h"
#include "kernel/hooks.h"
#include "model/profile.h"

struct run_options {
	struct capture_options capture;
	char *const *command; /* NULL-terminated argv, or NULL: then pids */
	const uint32_t *pids;
	size_t n_pids;
	bool as_root;		 /* the command stays root under sudo */
	bool scope;		 /* the command has a memory cgroup of its own */
	enum hooks_extent hooks; /* what the command is given in its environment */
	const char *recipes;	 /* and what its hooks are to know of recipes; NULL: nothing */
};

/*
 * Runs to the end. Returns the exit status for the program: the command's, 0 after an attach, 125
 * to 127 as the manual page has them. *signal is the signal that killed the command, or 0. Errors
 * have been printed.
 */
int capture_run(const struct run_options *options, int *signal);

/* For listeners: the model of the run that c is, its first target, and how close it came to a
 * limit, whose text must be valid as long as the listeners. */
const struct profile *run_profile(const struct capture *c);
uint32_t run_target(const struct capture *c);
void run_note_closest(struct capture *c, const struct run_closest *closest);

#endif
