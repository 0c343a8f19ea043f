// SPDX-License-Identifier: GPL-2.0-only
/* parts.bpf.c - blocks are taken and given back: see parts.bpf.h. */
#include "parts.bpf.h"

enum { TAKEN = 1, GONE };

struct taking {
	struct mm_rss *m;
	u32 done;
};

static long try_to_take(u32 i, struct taking *t)
{
	u32 old = *(volatile u32 *)&t->m->takers;

	if (old & MM_DROPPED)
		t->done = GONE;
	else if (__sync_val_compare_and_swap(&t->m->takers, old, old + 1) == old)
		t->done = TAKEN;
	return t->done != 0;
}

/*
 * Keeps the room of an mm from being given back until leave_room(). Returns false if the mm at that
 * address is gone. Example: an event on CPU 3 takes the room of slot 4; on CPU 0 the mm's last page
 * goes, which drop_mm() has counted already with CPU 3's. Then CPU 3 gives the slot back, not CPU
 * 0: until CPU 3 is done, nobody else gets the slot or its blocks.
 */
static __always_inline bool take_room(struct mm_rss *m)
{
	struct taking t = {.m = m};

	short_loop(ATTEMPTS, try_to_take, &t);
	if (!t.done)
		count(lost_updates);
	return t.done == TAKEN;
}

static __always_inline void leave_room(struct mm_rss *m)
{
	if (atomic_add(&m->takers, -1) == MM_DROPPED + 1)
		give_back(m);
}

/* Takes a block that was given back, or one never used. Returns NO_BLOCK if all are in use. */
static __always_inline u32 claim_block(void)
{
	u32 block;

	if (!bpf_map_pop_elem(&free_blocks, &block))
		return block;
	block = atomic_add(&machine.blocks, 1);
	if (block < config.blocks)
		return block + 1;
	atomic_add(&machine.blocks, -1);
	return NO_BLOCK;
}

/* From now on the mm has CPUs that are summed. */
static __always_inline void begin_rest(struct mm_rss *m)
{
	if (!__sync_val_compare_and_swap(&m->rest[0], 0, cell(1, 0)))
		count(summed_memory);
	for (int member = 1; member < NR_MM_COUNTERS; member++)
		__sync_val_compare_and_swap(&m->rest[member], 0, cell(1, 0));
}

struct linking {
	struct mm_rss *m;
	struct block *b;
	u32 block;
	u32 done;
};

static long try_to_link(u32 i, struct linking *l)
{
	u32 first = *(volatile u32 *)&l->m->blocks;

	*(volatile u32 *)&l->b->next = first;
	l->done = __sync_val_compare_and_swap(&l->m->blocks, first, l->block) == first;
	return l->done;
}

/* Puts a block into the chain of an mm. Its CPUs are marked later, so nobody uses it yet. */
static __always_inline bool link_block(struct mm_rss *m, u32 block, u32 group)
{
	struct linking l = {.m = m, .b = block_at(block), .block = block};

	if (!l.b)
		return false;
	l.b->cpus = group << WIRE_GROUP_CPUS;
	short_loop(ATTEMPTS, try_to_link, &l);
	if (l.done)
		return true;
	count(lost_updates);
	bpf_map_push_elem(&free_blocks, &block, 0);
	return false;
}

static __always_inline u32 take_block(struct mm_rss *m, u32 group)
{
	u32 block = claim_block();

	if (!block) {
		begin_rest(m);
		return SUMMED;
	}
	return link_block(m, block, group) ? block : NO_BLOCK;
}

/*
 * Returns the block of a group of CPUs, which is taken if there is none. If two CPUs take one at
 * once, the mm keeps both until it goes, and uses that which was noted first.
 */
static __always_inline u32 need_block(struct mm_rss *m, u32 group)
{
	u32 *noted = block_of_group(m->slot, group), block, taken;

	if (!noted)
		return NO_BLOCK;
	block = *(volatile u32 *)noted;
	if (block)
		return block;
	taken = take_block(m, group);
	block = __sync_val_compare_and_swap(noted, NO_BLOCK, taken);
	return block ? block : taken;
}

int mark_cpu(struct mm_rss *m, u64 key, u32 cpu)
{
	const u32 mark = 1U << cpu % WIRE_GROUP_CPUS;

	if (!m || !take_room(m))
		return 0;
	if (m->key == key) {
		u32 block = need_block(m, cpu / WIRE_GROUP_CPUS);
		struct block *b = block == SUMMED ? NULL : block_at(block);

		if (b && !(*(volatile u32 *)&b->cpus & mark))
			__sync_fetch_and_or(&b->cpus, mark);
	}
	leave_room(m);
	return 0;
}

/* Forgets what was counted of a CPU. A new stamp refuses those who have read the word before. */
static __always_inline void clear_parts(struct cpu_parts *of_cpu)
{
	for (int member = 0; member < NR_MM_COUNTERS; member++) {
		u32 *at = &of_cpu->seen[member];

		*(volatile u32 *)at = (*(volatile u32 *)at / PART_STAMP + 1) * PART_STAMP;
	}
}

/* Where a walk is that gives back blocks. */
struct freeing {
	u32 slot;
	u32 block; /* NO_BLOCK: there is no other */
};

/* Clears a CPU of a block; at the 17th step, gives the block back. */
static long free_next(u32 i, struct freeing *f)
{
	const u32 block = f->block, cpu = i % (WIRE_GROUP_CPUS + 1);
	struct block *b = block_at(block);
	struct cpu_parts *of_cpu;
	u32 *noted;

	if (!b)
		return 1;
	if (cpu < WIRE_GROUP_CPUS) {
		of_cpu = b->cpus >> cpu & 1 ? parts_in(block, cpu) : NULL;
		if (of_cpu)
			clear_parts(of_cpu);
		return 0;
	}
	f->block = b->next;
	noted = block_of_group(f->slot, b->cpus / MARKS);
	if (noted)
		*(volatile u32 *)noted = NO_BLOCK;
	bpf_map_push_elem(&free_blocks, &block, 0);
	return 0;
}

static long end_sum(u32 group, struct freeing *f)
{
	u32 *noted = block_of_group(f->slot, group);

	if (noted)
		*(volatile u32 *)noted = NO_BLOCK;
	return 0;
}

int give_back(struct mm_rss *m)
{
	struct freeing f = {};
	u32 slot;

	if (!m)
		return 0;
	f.slot = slot = m->slot;
	f.block = m->blocks;
	short_loop(MAX_STEPS, free_next, &f);
	if (m->rest[0])
		short_loop(config.cpu_groups, end_sum, &f);
	bpf_map_push_elem(&free_mms, &slot, 0);
	return 0;
}
