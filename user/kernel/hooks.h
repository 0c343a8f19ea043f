/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hooks.h - variables in the environment of a command, so that marks of other tools come to us: by
 * Python's import hook and NVTX's injection library. docs/python.md says what they do.
 */
#ifndef QPROF_HOOKS_H
#define QPROF_HOOKS_H

enum hooks_extent {
	HOOKS_QUARK, /* AMD Quark's own checkpoints, in Python */
	HOOKS_ALL,   /* these, and PyTorch's record_function, NVTX ranges, cProfile */
	HOOKS_NONE,  /* the environment stays as it is */
};

enum { HOOKS_MAX_VARIABLES = 5 };

/* Variables for the command, "NAME=VALUE", allocated; a NULL ends them. */
struct hooks {
	char *variables[HOOKS_MAX_VARIABLES + 1];
};

/* What the hooks of Python are to know of recipes; see recipes/python_items.h. */
#define HOOKS_RECIPES "QPROF_PYTHON_RECIPES"

/*
 * Finds the files of the hooks beside our own executable, and what to set. What is missing is left
 * out, since the command comes first; warn is told what, and why. recipes: the value of
 * HOOKS_RECIPES, NULL for none.
 */
void hooks_prepare(struct hooks *hooks, enum hooks_extent extent, const char *recipes,
		   void (*warn)(void *context, const char *what, const char *why), void *context);

/* Writes them to a pipe to the child that becomes the command. Returns 0 or -errno. */
int hooks_send(const struct hooks *hooks, int pipe);
/* In that child: waits for them, and sets them. Returns 0 or -errno: they did not come whole. */
int hooks_receive(int pipe);

void hooks_free(struct hooks *hooks);

#endif
