/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usage.h - what a process or a tree has used: amounts that only grow. USAGE() has a line for each;
 * the struct and everything that handles all amounts alike come from it. How files and reports call
 * them is in format/quantities.h.
 */
#ifndef QPROF_USAGE_H
#define QPROF_USAGE_H

#include <stdint.h>

#include "base/amounts.h"
#include "bpf/wire.h"

/* X(member, the kernel side's figure): bytes, but for times and counts. */
#define USAGE(X)                                                                                   \
	X(io_read, wire->rchar + wire->extra_read) /* through calls, splice and io_uring too */    \
	X(io_write, wire->wchar + wire->extra_write)                                               \
	X(disk_read, wire->read_bytes)                                                             \
	X(disk_write, wire->write_bytes)                                                           \
	X(disk_write_cancelled, wire->cancelled_write_bytes) /* part of disk_write */              \
	X(cpu_ns, wire->cpu_ns)                                                                    \
	X(major_faults, wire->major_faults)                                                        \
	X(minor_faults, wire->minor_faults)                                                        \
	X(cpu_wait_ns, wire->cpu_wait_ns)                                                          \
	X(cpu_user_ns, wire->cpu_user_ns)                                                          \
	X(cpu_system_ns, wire->cpu_system_ns)                                                      \
	X(voluntary_switches, wire->voluntary_switches)                                            \
	X(involuntary_switches, wire->involuntary_switches)                                        \
	X(reclaim_ns, wire->reclaim_ns)                                                            \
	X(reclaim_cpu_ns, wire->reclaim_cpu_ns) /* part of reclaim_ns and of cpu_ns */             \
	X(storage_wait_ns, wire->storage_wait_ns)                                                  \
	X(lock_wait_ns, wire->lock_wait_ns)                                                        \
	X(sleep_ns, wire->sleep_ns)                                                                \
	X(gpu_wait_ns, wire->gpu_wait_ns)                                                          \
	X(gpu_wait_cpu_ns, wire->gpu_wait_cpu_ns) /* part of gpu_wait_ns and of cpu_ns */          \
	X(throttled_ns, 0) /* this and the rest: of trees alone, see usage_of_tree() */            \
	X(compaction_ns, 0)                                                                        \
	X(swap_ins, 0)

/* With windows, what these have is of windows alone. */
#define USAGE_OF_WINDOWS(X) X(storage_wait_ns) X(lock_wait_ns) X(sleep_ns) X(throttled_ns)

struct profile_usage {
#define USAGE_MEMBER(member, from) uint64_t member;
	USAGE(USAGE_MEMBER)
#undef USAGE_MEMBER
};

static inline struct profile_usage usage_from_wire(const struct wire_usage *wire)
{
#define USAGE_FROM(member, from) .member = (from),
	return (struct profile_usage){USAGE(USAGE_FROM)};
#undef USAGE_FROM
}

/* With what is known of trees, and not of each process. */
static inline struct profile_usage usage_of_tree(const struct wire_checkpoint *cp)
{
	struct profile_usage usage = usage_from_wire(&cp->tree.usage);

	usage.throttled_ns = cp->stalls.throttled_ns;
	usage.compaction_ns = cp->stalls.compaction_ns;
	usage.swap_ins = cp->stalls.swap_ins;
	return usage;
}

static inline void usage_add(struct profile_usage *sum, const struct profile_usage *more)
{
#define USAGE_ADD(member, from) sum->member += more->member;
	USAGE(USAGE_ADD)
#undef USAGE_ADD
}

/* Each amount becomes the larger of both. */
static inline void usage_raise(struct profile_usage *usage, const struct profile_usage *other)
{
#define USAGE_RAISE(member, from) raise_to(&usage->member, other->member);
	USAGE(USAGE_RAISE)
#undef USAGE_RAISE
}

/* Each amount becomes the smaller of both. */
static inline void usage_lower(struct profile_usage *usage, const struct profile_usage *other)
{
#define USAGE_LOWER(member, from) usage->member = smaller_of(usage->member, other->member);
	USAGE(USAGE_LOWER)
#undef USAGE_LOWER
}

/* What was used after `before`, up to `now`; 0 where that is negative. */
static inline struct profile_usage usage_between(const struct profile_usage *before,
						 const struct profile_usage *now)
{
#define USAGE_LESS(member, from) .member = since(before->member, now->member),
	return (struct profile_usage){USAGE(USAGE_LESS)};
#undef USAGE_LESS
}

#endif
