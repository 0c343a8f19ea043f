/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * functions.h - the functions of an ELF file that have a name: where they begin and return. Names
 * come from .symtab and .dynsym, and from the file for debuggers where it is installed, under
 * /usr/lib/debug/.build-id.
 *
 * Files are hostile, as in usdt.h: what does not fit is an error, and sizes are bounded.
 */
#ifndef QPROF_FUNCTIONS_H
#define QPROF_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FUNCTIONS_MAX = 256,	      /* of one pattern in a file; more are left out */
	FUNCTION_MAX_BYTES = 1 << 20, /* of code, each of its parts */
	FUNCTION_MAX_RETURNS = 512,
	FUNCTION_MAX_PARTS = 16, /* what it jumps to: its cold part, functions at its end */
};

struct function {
	const char *name;
	uint64_t begin;	   /* offset in the file where a probe of its begin goes */
	uint64_t *returns; /* offsets of instructions by which it returns */
	size_t n_returns;
	/* NULL; or why not all returns are known: a static text. Without returns: none is. */
	const char *unknown;
};

struct functions;

/* Opens the file that is open at fd, which stays the caller's. Returns 0; -ENOEXEC, as for files of
 * 32 bits; or another -errno, and *why (a static text, or NULL). */
int functions_open(int fd, struct functions **functions, const char **why);
void functions_free(struct functions *fs);

typedef void (*functions_fn)(void *context, const struct function *function);

/*
 * Tells of each function whose name matches a pattern with * and ?. returns: also where it returns.
 * Returns how many there are, FUNCTIONS_MAX + 1 if some were left out; or -errno.
 */
int functions_find(struct functions *fs, const char *pattern, bool returns, functions_fn tell,
		   void *context);

#endif
