/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * units.h - writes numbers as text: exact decimals for files; rounded, with a unit, for people.
 */
#ifndef QPROF_UNITS_H
#define QPROF_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for any of these texts. */
enum { UNITS_TEXT_MAX = 32 };

/* Each writes into out (UNITS_TEXT_MAX bytes) and returns it. */

char *units_count(char *out, uint64_t count);
/*
 * bytes / 1048576 with as many decimals as it takes to round back to the same byte: at least two,
 * at most seven.
 */
char *units_mb(char *out, uint64_t bytes);
/* The same with two decimals, rounded. */
char *units_mb_rounded(char *out, uint64_t bytes);
/* Returns whether the two decimals round back to the same byte. */
bool units_mb_is_whole(uint64_t bytes);
/* after - before, with a sign if it is negative; as units_mb(). */
char *units_mb_delta(char *out, uint64_t before, uint64_t after);
/* Seconds with 0 to 9 decimals, rounded. */
char *units_secs(char *out, uint64_t ns, unsigned int decimals);

/* A finite number, with a point and as many digits as it takes to read the same double back. */
char *units_double(char *out, double value);

/* "1.90 GiB" */
char *units_bytes_for_people(char *out, uint64_t bytes);
/* "1.90G": at most five columns. */
char *units_bytes_short(char *out, uint64_t bytes);
/* "+820M", "-12.0K", "0" */
char *units_delta_short(char *out, int64_t bytes);
/* "+820 MiB", "-12.0 KiB" */
char *units_delta_for_people(char *out, uint64_t before, uint64_t after);
/* "12 ms", "25.2 s", "3m 20s", "2h 05m" */
char *units_time_for_people(char *out, uint64_t ns);

/*
 * Writes n and its noun: "1 process", "3 processes". The letters of what that stand in brackets
 * belong to the plural: "process(es)". Cuts the text to size bytes and returns out.
 */
char *units_counted(char *out, size_t size, uint64_t n, const char *what);

#endif
