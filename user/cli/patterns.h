/* SPDX-License-Identifier: GPL-2.0-only */
/* patterns.h - what --usdt collects. */
#ifndef QPROF_PATTERNS_H
#define QPROF_PATTERNS_H

#include <argp.h>
#include <stddef.h>

/* Adds a PROVIDER:NAME to *list (realloc'ed), which holds *n; says what is wrong with it and exits.
 * The text stays the caller's. */
void patterns_add(const char ***list, size_t *n, const char *pattern, struct argp_state *state);

#endif
