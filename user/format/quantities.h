/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * quantities.h - what is measured, stated once. USAGE_QUANTITIES is what only grows from the start
 * on, as I/O and CPU time; MEMORY_BESIDE is memory beside RSS. Every format takes them from here:
 * the keys of a profile (fields.c), its comments, events, traces, tables and comparisons.
 */
#ifndef QPROF_QUANTITIES_H
#define QPROF_QUANTITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/usage.h"

enum quantity_unit {
	QUANTITY_BYTES, /* MiB in files, with the decimals that name the byte: the key ends in _mb
			 */
	QUANTITY_NS,	/* seconds in files: _secs */
	QUANTITY_COUNT, /* the key has no ending */
};

/*
 * Quantities that are shown together: one track of a trace, one table by phase and one by process
 * in the text report. G(name, titles of these tables); NULL: others there say more.
 */
#define QUANTITY_GROUP_LIST(G)                                                                     \
	G(CALLS, NULL, NULL)                                                                       \
	G(STORAGE, NULL, NULL)                                                                     \
	G(CPU, NULL, NULL)                                                                         \
	G(FAULTS, "FAULTS BY PHASE", "FAULTS BY PROCESS")                                          \
	G(WAITS, NULL, "WAITED BY PROCESS")                                                        \
	G(MODES, NULL, NULL)                                                                       \
	G(SWITCHES, "SWITCHES BY PHASE", "SWITCHES BY PROCESS")                                    \
	G(STALLS, NULL, "STALLS BY PROCESS")

enum quantity_group {
#define QUANTITY_GROUP(name, ...) QUANTITY_##name,
	QUANTITY_GROUP_LIST(QUANTITY_GROUP)
#undef QUANTITY_GROUP
		QUANTITY_GROUPS
};
struct quantity_titles {
	const char *by_phase, *by_process;
};
extern const struct quantity_titles quantity_groups[QUANTITY_GROUPS];

/*
 * Q(member of struct profile_usage, stem of its keys, unit, where, group, words, column, compared,
 *   row, since, what it is)
 *
 * stem: with the unit's ending it is the key of a profile: "io_read_mb". Totals have "total_" in
 * front; events and traces have the exact number, "io_read_bytes".
 * where: EVERYWHERE is rows, phases, processes, totals, jobs, containers, users and events; TOTALS
 * is totals and events. IF_ANY is as EVERYWHERE, but a profile has the key only where there is any;
 * IF_ASKED is as IF_ANY, but events have it only where there is any, too, and metrics only with
 * --waits, for else nobody looks; IN_RUNS is as IF_ANY, of runs alone: no audit has it. IN_TREES is
 * as IN_RUNS, but processes alone lack it. words: for people, of a track and of a column. NULL: in
 * no track and no table. compared: by diff, and told to Prometheus. OWN is one called by the stem,
 * for what is EVERYWHERE; TOLD is one that Prometheus alone is told. diff sums up several for IO
 * and CPU (compare.c), and has none for NONE; the names that Prometheus has for these three are in
 * metrics.c. row: QUARK is a key that AMD Quark's rows have too, with two decimals; the number of
 * bytes is beside it. since: 1 is the first format of a profile. Tables leave a later quantity out
 * if no item has it.
 */
#define USAGE_QUANTITIES(Q, ...)                                                                   \
	Q(io_read, "io_read", BYTES, EVERYWHERE, CALLS, "read by calls", NULL, IO, OWN, 1,         \
	  "bytes through read calls (read, splice, io_uring and their kind)", __VA_ARGS__)         \
	Q(io_write, "io_write", BYTES, EVERYWHERE, CALLS, "written by calls", NULL, IO, OWN, 1,    \
	  "bytes through write calls", __VA_ARGS__)                                                \
	Q(disk_read, "disk_read", BYTES, EVERYWHERE, STORAGE, "read from storage", NULL, NONE,     \
	  QUARK, 1, "bytes that storage delivered", __VA_ARGS__)                                   \
	Q(disk_write, "disk_write", BYTES, EVERYWHERE, STORAGE, "written to storage", NULL, NONE,  \
	  QUARK, 1, "bytes of pages made dirty, and of direct writes", __VA_ARGS__)                \
	Q(disk_write_cancelled, "disk_write_cancelled", BYTES, TOTALS, STORAGE, NULL, NULL, NONE,  \
	  OWN, 1, "the part of disk_write that was truncated away before it was written",          \
	  __VA_ARGS__)                                                                             \
	Q(cpu_ns, "cpu_time", NS, EVERYWHERE, CPU, "CPU time", NULL, CPU, OWN, 1,                  \
	  "CPU time, user and system", __VA_ARGS__)                                                \
	Q(major_faults, "major_faults", COUNT, EVERYWHERE, FAULTS, "major page faults", "MAJOR",   \
	  OWN, OWN, 2, "page faults that waited for storage", __VA_ARGS__)                         \
	Q(minor_faults, "minor_faults", COUNT, EVERYWHERE, FAULTS, "minor page faults", "MINOR",   \
	  OWN, OWN, 2, "page faults that did not", __VA_ARGS__)                                    \
	Q(cpu_wait_ns, "cpu_wait", NS, EVERYWHERE, WAITS, "waited for a CPU", "FOR CPU", OWN, OWN, \
	  3, "time in which threads were ready to run and had no CPU", __VA_ARGS__)                \
	Q(cpu_user_ns, "cpu_user", NS, EVERYWHERE, MODES, "user CPU time", NULL, OWN, OWN, 3,      \
	  "CPU time below the kernel, as the scheduler's ticks find it", __VA_ARGS__)              \
	Q(cpu_system_ns, "cpu_system", NS, EVERYWHERE, MODES, "system CPU time", NULL, OWN, OWN,   \
	  3, "CPU time in the kernel, as the scheduler's ticks find it", __VA_ARGS__)              \
	Q(voluntary_switches, "voluntary_switches", COUNT, EVERYWHERE, SWITCHES,                   \
	  "voluntary switches", "VOLUNTARY", OWN, OWN, 3, "times that threads began to sleep",     \
	  __VA_ARGS__)                                                                             \
	Q(involuntary_switches, "involuntary_switches", COUNT, EVERYWHERE, SWITCHES,               \
	  "involuntary switches", "FORCED", OWN, OWN, 3,                                           \
	  "times that a CPU was taken from a thread", __VA_ARGS__)                                 \
	Q(reclaim_ns, "reclaim", NS, IF_ANY, STALLS, "freed memory themselves", "RECLAIM", OWN,    \
	  OWN, 3,                                                                                  \
	  "time in which threads that asked for memory had to free some (reclaim, compaction), "   \
	  "waits for a CPU apart; absent: none",                                                   \
	  __VA_ARGS__)                                                                             \
	Q(reclaim_cpu_ns, "reclaim_cpu", NS, IN_RUNS, STALLS, NULL, NULL, NONE, OWN, 3,            \
	  "the part of reclaim in which they ran: in cpu_time, too", __VA_ARGS__)                  \
	Q(storage_wait_ns, "storage_wait", NS, IF_ASKED, STALLS, "waited for storage", "STORAGE",  \
	  TOLD, OWN, 3,                                                                            \
	  "time in which threads slept until I/O was done; absent: none, or without "              \
	  "--waits",                                                                               \
	  __VA_ARGS__)                                                                             \
	Q(lock_wait_ns, "lock_wait", NS, IF_ASKED, STALLS, "waited for locks", "LOCKS", TOLD, OWN, \
	  3, "the same in futex(2): for another thread", __VA_ARGS__)                              \
	Q(sleep_ns, "sleep", NS, IF_ASKED, STALLS, "slept", "SLEEP", TOLD, OWN, 3,                 \
	  "the same for anything else: a child, a pipe, a timer", __VA_ARGS__)                     \
	Q(gpu_wait_ns, "gpu_wait", NS, IF_ASKED, STALLS, "waited for a GPU", "FOR GPU", TOLD, OWN, \
	  3,                                                                                       \
	  "time in which threads were in calls that wait for a GPU, waits for a CPU apart; "       \
	  "absent: none",                                                                          \
	  __VA_ARGS__)                                                                             \
	Q(gpu_wait_cpu_ns, "gpu_wait_cpu", NS, IN_RUNS, STALLS, NULL, NULL, NONE, OWN, 3,          \
	  "the part of gpu_wait in which they ran: in cpu_time, too", __VA_ARGS__)                 \
	Q(throttled_ns, "throttled", NS, IN_TREES, STALLS, NULL, NULL, NONE, OWN, 3,               \
	  "with --waits, the part of cpu_wait for which a CPU quota stopped the threads",          \
	  __VA_ARGS__)                                                                             \
	Q(compaction_ns, "compaction", NS, IN_TREES, STALLS, NULL, NULL, NONE, OWN, 3,             \
	  "the part of reclaim that is compaction, for large pages", __VA_ARGS__)                  \
	Q(swap_ins, "swap_ins", COUNT, IN_TREES, STALLS, NULL, NULL, NONE, OWN, 3,                 \
	  "pages that were brought in from swap; their time is in storage_wait", __VA_ARGS__)

/*
 * B(member, key, key of the highest, what it is in a row, what the highest in the totals is, since)
 *
 * Memory beside RSS, which rises and falls. Rows and processes have what is there now, processes
 * and totals the highest that was seen; where there is none, they lack the key. The members, in the
 * model too, are `hugetlb` and `peak_hugetlb`. RSS and its parts have their keys in fields.c.
 */
#define MEMORY_BESIDE(B, ...)                                                                      \
	B(hugetlb, "hugetlb_mb", "peak_hugetlb_mb",                                                \
	  "hugetlb memory of the tree now, which is in no RSS; absent: none",                      \
	  "hugetlb memory, the highest that was seen: there may have been more", 1, __VA_ARGS__)   \
	B(gpu, "gpu_memory_mb", "gpu_peak_memory_mb",                                              \
	  "memory that the tree has allocated on GPUs and not freed; absent: no GPU was used",     \
	  "the most memory on GPUs, all devices together, at any time", 3, __VA_ARGS__)            \
	B(pinned, "pinned_host_memory_mb", "pinned_host_peak_memory_mb",                           \
	  "memory of the host that the tree has pinned for GPUs; absent: none",                    \
	  "the most memory of the host that was pinned for GPUs at any time", 3, __VA_ARGS__)

#define MEMORY_NOW(member, ...)	    uint64_t member;
#define MEMORY_HIGHEST(member, ...) uint64_t peak_##member;

/* The key in a profile, the exact number in a trace and in an event, of the stem and the unit. */
#define QUANTITY_KEY_BYTES(stem)	   stem "_mb"
#define QUANTITY_KEY_NS(stem)		   stem "_secs"
#define QUANTITY_KEY_COUNT(stem)	   stem
#define QUANTITY_EXACT_BYTES(stem)	   stem "_bytes"
#define QUANTITY_EXACT_NS(stem)		   stem "_ns"
#define QUANTITY_EXACT_COUNT(stem)	   stem
#define QUANTITY_EVENT_BYTES(member, stem) stem "_bytes"
#define QUANTITY_EVENT_NS(member, stem)	   #member
#define QUANTITY_EVENT_COUNT(member, stem) stem

struct quantity {
	const char *stem;      /* "io_read" */
	const char *key;       /* of a profile: "io_read_mb" */
	const char *exact_key; /* of the whole number: "io_read_bytes" */
	const char *event_key; /* the same, but "cpu_ns" */
	const char *words;     /* for people: "read by calls" */
	const char *column;    /* the same, short */
	size_t offset;	       /* in struct profile_usage */
	enum quantity_unit unit;
	enum quantity_group group;
	unsigned int since;
	bool everywhere; /* false: in totals and events only */
	bool if_any;
	bool if_asked; /* if_any, too */
	bool in_audits;
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

/* With --window, it is of windows alone. */
static inline bool quantity_is_of_windows(const struct quantity *quantity)
{
#define IS_OFFSET(member) quantity->offset == offsetof(struct profile_usage, member) ||
	return USAGE_OF_WINDOWS(IS_OFFSET) false;
#undef IS_OFFSET
}

/* Each returns out (UNITS_TEXT_MAX bytes): the number as files have it, and as people read it. */
char *quantity_text(char *out, enum quantity_unit unit, uint64_t value);
char *quantity_for_people(char *out, enum quantity_unit unit, uint64_t value);

#endif
