/* SPDX-License-Identifier: GPL-2.0-only */
/* terminfo.h - what terminfo knows of a type of terminal. (term.h defines a macro for every other
 * word, so no other file includes it.) */
#ifndef QPROF_TERMINFO_H
#define QPROF_TERMINFO_H

#include <stddef.h>

#include "base/error.h"

/*
 * Writes the sequences that restore the screen of the terminal at fd, whose type TERM names, to
 * out: at most size bytes, whole sequences only, their length in *len. Returns 0; or -1 and *err if
 * the type is not known or its cursor cannot be moved.
 */
int terminfo_restore(int fd, char *out, size_t size, size_t *len, struct error *err);

#endif
