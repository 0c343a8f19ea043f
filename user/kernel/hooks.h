/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hooks.h - what a command is given in its environment so that marks which others put into it come
 * to us: Python's import hook, NVTX's injection library. docs/python.md has what they do.
 */
#ifndef QPROF_HOOKS_H
#define QPROF_HOOKS_H

enum hooks_extent {
	HOOKS_QUARK, /* AMD Quark's own checkpoints, in Python */
	HOOKS_ALL,   /* likewise PyTorch's record_function, NVTX ranges, cProfile */
	HOOKS_NONE,  /* the environment stays as it is */
};

enum { HOOKS_MAX_VARIABLES = 4 };

/* Variables for the command, "NAME=VALUE", malloc'ed; a NULL ends them. */
struct hooks {
	char *variables[HOOKS_MAX_VARIABLES + 1];
};

/*
 * Finds the files of the hooks beside our own executable, and what to set. warn is told what
 * could not be had and why: what is missing is left out, for the command comes first.
 */
void hooks_prepare(struct hooks *hooks, enum hooks_extent extent,
		   void (*warn)(void *context, const char *what, const char *why), void *context);

/* In the command-to-be: sets them. */
void hooks_apply(const struct hooks *hooks);

void hooks_free(struct hooks *hooks);

#endif
