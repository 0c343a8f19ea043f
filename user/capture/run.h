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

struct stacks;
struct run_windows;

struct run_options {
	struct capture_options capture;
	char *const *command; /* NULL-terminated argv, or NULL: then pids */
	const uint32_t *pids;
	size_t n_pids;
	bool as_root;		 /* the command stays root under sudo */
	bool scope;		 /* the command has a memory cgroup of its own */
	enum hooks_extent hooks; /* what the command is given in its environment */
	bool base_names;	 /* files are named without their directories */
};

/*
 * Runs to the end. Returns the exit status for the program: the command's, 0 after an attach, 125
 * to 127 as the manual page has them. *signal is the signal that killed the command, or 0. Errors
 * have been printed.
 */
int capture_run(const struct run_options *options, int *signal);

/* For listeners: the model of the run that c is, the target whose limit of memory is the lowest,
 * and how close the run came to a limit, whose text must be valid as long as the listeners.
 * is_apart: other targets were in other memory cgroups as the run began. */
const struct profile *run_profile(const struct capture *c);
uint32_t run_tightest(const struct capture *c, bool *is_apart);
void run_note_closest(struct capture *c, const struct run_closest *closest);
/* The first process that has mapped a driver's library of GPUs, or 0. And what the drivers say,
 * which is the listener's and may change until it is closed. */
uint32_t run_gpu_user(const struct capture *c);
void run_note_gpus(struct capture *c, const struct run_gpus *gpus);
/* Which code made memory grow: the listener's, until it is closed. */
void run_note_stacks(struct capture *c, const struct stacks *stacks);
/* In which repeats of a phase what was on: the listener's, the same. And after each row, whether
 * a window is open: profile_window(). */
void run_note_windows(struct capture *c, const struct run_windows *windows);
void run_note_window(struct capture *c, bool is_open);
/* From start() to finish(). */
struct engine *run_engine(const struct capture *c);

#endif
