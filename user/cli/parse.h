/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * parse.h - values as users type them. Each function takes the whole text, without signs and
 * leading blanks, and returns 0, or -EINVAL for a text that it refuses.
 */
#ifndef QPROF_PARSE_H
#define QPROF_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* "10s", "5m", "2h", "500ms"; a bare number is seconds; fractions are fine. More than 0. */
int parse_duration(const char *text, uint64_t *ns);

/* "200M", "1.5G", "64 KiB", a bare number is bytes; units are of 1024. */
int parse_bytes(const char *text, uint64_t *bytes);

/* "5%", "0.5%". */
int parse_percent(const char *text, double *percent);

/* "400", "-1.5", "2e-3". */
int parse_real(const char *text, double *number);

/* A whole number from min to max. */
int parse_count(const char *text, unsigned int min, unsigned int max, unsigned int *count);

/* "123" or "123,456": adds to *pids, which is malloc'ed and holds *n. Also returns -ENOMEM. */
int parse_pids(const char *text, uint32_t **pids, size_t *n);

#endif
