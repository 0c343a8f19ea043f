/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * parts.bpf.h - what we have counted of each CPU's part of an mm's counters, where the kernel keeps
 * such parts: see rss.bpf.c.
 *
 * Few processes run on all CPUs of a large machine. So there is room only for the CPUs on which an
 * mm has changed, in blocks of 16 CPUs that are taken at the first change. Whoever goes through all
 * parts of an mm goes through its blocks, and in each through the CPUs that it names. That costs
 * the same whether the machine has 2 CPUs or 512.
 *
 * Example with 512 CPUs: the mm in slot 4 changes on CPU 3. `block_of` has 32 numbers for slot 4,
 * one for each 16 CPUs; the first is 0, so there is no block. Block 7 is free: it gets the mark for
 * CPU 3, and becomes the first of the mm's chain. A change on CPU 5 adds its mark to block 7, one
 * on CPU 40 takes block 9, which becomes the third number. A checkpoint then looks at CPU 40 of
 * block 9, and at CPUs 3 and 5 of block 7.
 *
 * If no block is free, the mm's CPUs of that 16 are summed: for these, we keep one sum a counter
 * (mm_rss.rest), and read all their parts at each change. That is exact, and the slower the more
 * CPUs there are. It stays so until the mm goes, and is counted (summed_memory).
 *
 * Invariants:
 * - A block belongs to one mm from the moment it is taken until the mm is dropped. `block_of` and
 *   the chain of an mm change only while somebody holds its room (take_room()), or by
 *   give_back() when nobody does.
 * - A CPU is marked before a change on it is counted. A part that is not 0 has been counted, or its
 *   event is yet to come.
 * - A word of `parts` gets another stamp each time it changes, also when its block is given back.
 *   So who has read it before and has checked the mm's key after that can replace it safely.
 */
#ifndef QPROF_PARTS_BPF_H
#define QPROF_PARTS_BPF_H

#include "mms.bpf.h"

/*
 * What we have counted of a CPU's parts of an mm's counters: in each word a stamp, PART_USED and,
 * in the low 16 bits, the part. 16 bits suffice: a part is below the kernel's batch, max(32, 2 *
 * CPUs). PART_USED: the CPU is marked in its block.
 */
struct cpu_parts {
	u32 seen[NR_MM_COUNTERS];
};

enum {
	PART_USED = 1 << 16,
	PART_STAMP = 1 << 17, /* one step of the stamp */
	MARKS = 1 << WIRE_GROUP_CPUS,
	/* Of a walk over all blocks of an mm and their CPUs, even if there were two blocks for each
	 * group, which two CPUs took at once. */
	MAX_STEPS = 2 * (WIRE_MAX_CPUS + WIRE_MAX_CPUS / WIRE_GROUP_CPUS),
};

/* At index (CPU % 16) * blocks + block: the entries of a CPU are neighbours. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_parts);
} parts __weak SEC(".maps");

/* Blocks are known by their number + 1. */
enum { NO_BLOCK = 0, SUMMED = 0xffffffff };

struct block {
	u32 next; /* block of the mm */
	u32 cpus; /* CPU / 16 of them (high half), and a mark for each on which the mm changed */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct block);
} blocks __weak SEC(".maps");

/* Blocks that were given back. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, u32);
} free_blocks __weak SEC(".maps");

/* The block of each CPU, NO_BLOCK, or SUMMED: the loader asks for an even number of groups. */
struct two_groups {
	u32 block[2];
};

/* At index (slot * groups + CPU / 16) / 2. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct two_groups);
} block_of __weak SEC(".maps");

/* Returns where the block of a group of CPUs is noted. */
static __always_inline u32 *block_of_group(u32 slot, u32 group)
{
	u32 at = (slot * config.cpu_groups + group) / 2;
	struct two_groups *two = bpf_map_lookup_elem(&block_of, &at);

	return two ? &two->block[group % 2] : NULL;
}

/* Returns the block of a CPU; or NO_BLOCK, or SUMMED. */
static __always_inline u32 find_block(u32 slot, u32 cpu)
{
	u32 *block = block_of_group(slot, cpu / WIRE_GROUP_CPUS);

	return block ? *(volatile u32 *)block : NO_BLOCK;
}

static __always_inline struct cpu_parts *parts_in(u32 block, u32 cpu)
{
	u32 at = cpu % WIRE_GROUP_CPUS * config.blocks + block - 1;

	return block - 1 < config.blocks ? bpf_map_lookup_elem(&parts, &at) : NULL;
}

static __always_inline u32 *seen_part(u32 block, u32 cpu, u32 member)
{
	struct cpu_parts *of_cpu = parts_in(block, cpu);

	return of_cpu ? &of_cpu->seen[member & (NR_MM_COUNTERS - 1)] : NULL;
}

static __always_inline struct block *block_at(u32 block)
{
	u32 at = block - 1;

	return bpf_map_lookup_elem(&blocks, &at);
}

/* Marks a CPU of the mm at an address, and takes a block for it. Does nothing if the mm is gone. */
int mark_cpu(struct mm_rss *m, u64 key, u32 cpu);

#endif
