/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * quantities.h - what is measured from the start on and only grows: I/O, CPU time. Each quantity is
 * stated once, in USAGE_QUANTITIES, and every format takes it from there: the keys of a profile
 * (fields.c), its comments, events, traces, tables and comparisons. Memory, which rises and falls,
 * has its keys in fields.c.
 */
#ifndef QPROF_QUANTITIES_H
#define QPROF_QUANTITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/usage.h"

enum quantity_unit {
	QUANTITY_BYTES, /* MiB in files: the key ends in _mb */
	QUANTITY_NS,	/* seconds in files: _secs */
	QUANTITY_COUNT, /* the key has no ending */
};

/* Quantities that are shown together: one track of a trace, one table of a report. */
enum quantity_group { QUANTITY_CALLS, QUANTITY_STORAGE, QUANTITY_CPU, QUANTITY_GROUPS };

/*
 * Q(member of struct profile_usage, key of a row, key of an event, unit, where, group, words for a
 * track, title of a column, since, what it is). where: EVERYWHERE is rows, phases, processes, jobs,
 * containers, users and totals, whose key has "total_" in front; TOTALS is totals and events.
 * since: 1 is the first format of a profile; tables leave a later quantity out if no profile has
 * it.
 */
#define USAGE_QUANTITIES(Q, ...)                                                                   \
	Q(io_read, "io_read_mb", "io_read_bytes", BYTES, EVERYWHERE, CALLS, "read by calls",       \
	  "READ", 1, "bytes through read calls (read, splice, io_uring and their kind)",           \
	  __VA_ARGS__)                                                                             \
	Q(io_write, "io_write_mb", "io_write_bytes", BYTES, EVERYWHERE, CALLS, "written by calls", \
	  "WRITTEN", 1, "bytes through write calls", __VA_ARGS__)                                  \
	Q(disk_read, "disk_read_mb", "disk_read_bytes", BYTES, EVERYWHERE, STORAGE,                \
	  "read from storage", "STORAGE", 1, "bytes that storage delivered", __VA_ARGS__)          \
	Q(disk_write, "disk_write_mb", "disk_write_bytes", BYTES, EVERYWHERE, STORAGE,             \
	  "written to storage", "STORAGE", 1, "bytes of pages made dirty, and direct writes",      \
	  __VA_ARGS__)                                                                             \
	Q(disk_write_cancelled, "disk_write_cancelled_mb", "disk_write_cancelled_bytes", BYTES,    \
	  TOTALS, STORAGE, NULL, NULL, 1,                                                          \
	  "part of disk_write: truncated away before it was written", __VA_ARGS__)                 \
	Q(cpu_ns, "cpu_time_secs", "cpu_ns", NS, EVERYWHERE, CPU, "CPU time", "CPU", 1,            \
	  "CPU time, user and system", __VA_ARGS__)

struct quantity {
	const char *key;       /* "io_read_mb" */
	const char *event_key; /* of the exact number: "io_read_bytes" */
	enum quantity_unit unit;
	bool everywhere; /* false: in totals and events only */
	enum quantity_group group;
	const char *words;  /* for people, of a track; NULL: in no track */
	const char *column; /* title of a column */
	unsigned int since;
	const char *means;
	size_t offset; /* in struct profile_usage */
};

/* In the order of struct profile_usage, which is that of USAGE(). */
enum {
#define QUANTITY_INDEX(member, from) QUANTITY_OF_##member,
	USAGE(QUANTITY_INDEX)
#undef QUANTITY_INDEX
		N_QUANTITIES
};
extern const struct quantity quantities[N_QUANTITIES];

static inline uint64_t quantity_of(const struct quantity *quantity,
				   const struct profile_usage *usage)
{
	return *(const uint64_t *)((const char *)usage + quantity->offset);
}

/* The number as files have it, with their decimals. In out (UNITS_TEXT_MAX bytes), returned. */
char *quantity_text(char *out, const struct quantity *quantity, uint64_t value);

#endif
