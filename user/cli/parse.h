/* SPDX-License-Identifier: GPL-2.0-only */
/* parse.h - what users type as values of options: whole, in range, or refused. */
#ifndef QPROF_PARSE_H
#define QPROF_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* "10s", "5m", "2h", "500ms"; a bare number is seconds; fractions are fine. More than 0. 0, or
 * -EINVAL. */
int parse_duration(const char *text, uint64_t *ns);

/* A whole number from min to max. 0, or -EINVAL. */
int parse_count(const char *text, unsigned int min, unsigned int max, unsigned int *count);

/* "123" or "123,456": adds to *pids (realloc'ed), which holds *n. 0, -EINVAL or -ENOMEM. */
int parse_pids(const char *text, uint32_t **pids, size_t *n);

#endif
