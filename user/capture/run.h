/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * run.h - the life of a run: prepare, attach, run, drain, finish. Every way out - the target
 * exits, a signal, the duration, an error - is the same way.
 */
#ifndef QPROF_RUN_H
#define QPROF_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/hooks.h"
#include "model/profile.h"

struct run_options {
	char *const *command; /* NULL-terminated argv, or NULL: then pids */
	const uint32_t *pids;
	size_t n_pids;
	const char *output;	     /* path, or "-" */
	uint64_t duration_ns;	     /* 0: without limit */
	unsigned int max_processes;  /* followed at a time; 0 for the default */
	bool follow;		     /* descendants, too */
	bool cost;		     /* have the kernel count what our BPF programs take */
	bool as_root;		     /* the command stays root under sudo */
	enum hooks_extent hooks;     /* what the command is given in its environment */
	bool count_splice;	     /* see struct engine_config */
	const char *const *patterns; /* of --usdt */
	size_t n_patterns;
	unsigned int summary_width; /* columns of the table on stderr at the end; 0 for none */
	bool summary_colour;
	bool live; /* show() is wanted, and BPF wakes us for it */
	/* Called when there is something new, ten times a second at most. */
	void (*show)(void *context, const struct profile *p, uint64_t now_ns);
	void *context;
};

/*
 * Runs to the end. The exit status for the program: the command's, 0 of an attach, 125 to 127 as in
 * docs; *signal is the signal that killed the command, or 0. Errors have been printed.
 */
int capture_run(const struct run_options *options, int *signal);

#endif
