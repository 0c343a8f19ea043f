/* SPDX-License-Identifier: GPL-2.0-only */
/* terminfo.h - what is known of the type of a terminal. (term.h has a macro for every other word,
 * so nobody else includes it.) */
#ifndef QPROF_TERMINFO_H
#define QPROF_TERMINFO_H

#include <stddef.h>

#include "base/error.h"

/*
 * Of the type that TERM names, for the terminal at fd: what gives a screen back that was taken, in
 * out, of at most size bytes (whole sequences only), and how long that is in *len. 0; or -1 and
 * *err: the type is not known, or its cursor cannot be moved.
 */
int terminfo_restore(int fd, char *out, size_t size, size_t *len, struct error *err);

#endif
