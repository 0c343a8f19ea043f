/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mms.bpf.h - the mms that are counted: what is known of each, and how to find it by its address.
 * Each page fault on the machine takes that way.
 *
 * Most page faults are of processes that are not tracked. So the way begins with a table of 8192
 * buckets. An empty bucket ends it with one load: that mm is not counted. A bucket with one mm
 * leads straight to its slot. Only for a bucket with several mms we ask the kernel's hash table.
 *
 * Example: mms A (slot 4) and B (slot 9) are tracked; A hashes to bucket 17, B to 17 as well, C to
 * 20. Bucket 17 says "2 mms, the first in slot 4", bucket 20 says 0. A fault of C loads bucket 20
 * and is done. A fault of A finds slot 4 and A's address in it. A fault of B finds A's address in
 * slot 4 and asks the hash table, which says slot 9.
 *
 * Invariants:
 * - An mm is in `mms` from the moment its process is tracked until its last page is gone. On some
 *   kernels that is later than the end of the process. It is always before the kernel can use the
 *   same address for another mm (see forget_if_empty() in rss.bpf.c).
 * - A tree's rss is the sum of mm_rss.rss over the mms of its job, but for what is being added to
 *   both at this instant. The same holds for file, swap and shmem.
 */
#ifndef QPROF_MMS_BPF_H
#define QPROF_MMS_BPF_H

#include "state.bpf.h"

/* The order of the kernel's enum in linux/mm_types_task.h; part of the rss_stat tracepoint's ABI.
 */
enum { MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES };

/* Returns true before 6.2: a counter of an mm is one number. */
static __always_inline bool has_old_layout(void)
{
	return bpf_core_field_exists(((struct mm_struct___old *)0)->rss_stat.count);
}

/*
 * A cell is a word with pages in its low CELL_BITS, and above them a stamp or an epoch, so that
 * both change in one atomic step. Stamps wrap: compare them by the sign of their difference.
 * Example: epoch 5 with 700 pages is 5 << 38 | 700.
 */
#define CELL_BITS  38 /* 1 PiB of 4 KiB pages */
#define CELL_PAGES ((1ULL << CELL_BITS) - 1)

static __always_inline u64 cell(u64 stamp, u64 pages)
{
	return stamp << CELL_BITS | (pages & CELL_PAGES);
}

/*
 * A job word has pages, and the job that they are counted for. A program that adds pages learns in
 * the same atomic step which tree to add them to, so a process can move to another job while it
 * faults. Pages may be below 0 for a moment; the bias keeps the borrow away from the job's bits.
 * Example: job 3 with -2 pages is 3 << 48 | ((1 << 40) - 2).
 */
#define JOB_SHIFT 48
#define JOB_BIAS  (1ULL << 40)

static __always_inline u64 job_word(u32 job, s64 pages)
{
	return (u64)job << JOB_SHIFT | (JOB_BIAS + pages);
}

static __always_inline u32 job_of(u64 word)
{
	return word >> JOB_SHIFT;
}

static __always_inline s64 pages_of(u64 word)
{
	return (s64)(word & ((1ULL << JOB_SHIFT) - 1)) - (s64)JOB_BIAS;
}

/*
 * The memory of one mm. Threads on many CPUs share it, so what each page fault writes is in other
 * cache lines than what each page fault reads.
 */
struct mm_rss {
	u64 key;	/* the address of its mm_struct; 0: the slot is free */
	s64 emitted;	/* rss at the last timeline point */
	u32 points;	/* how many points there were */
	u32 takers;	/* who uses its room, and MM_DROPPED: see parts.bpf.c */
	u64 inherited;	/* private pages that it was given at fork; see count_inherited() */
	u64 started_ns; /* of its process */
	u32 slot;
	u32 tgid;
	u32 orphaned;			      /* 1: its process has ended */
	u32 blocks;			      /* its first block, as in struct block: parts.bpf.h */
	u64 epoch;			      /* checkpoints of its process so far */
	u64 rss __attribute__((aligned(64))); /* job word: file + anon + shmem */
	u64 file, swap, shmem;		      /* job words; anon is the rest of rss */
	struct wire_peaks peaks;	      /* of rss */
	u64 shared[NR_MM_COUNTERS]
		__attribute__((aligned(64))); /* cells: the counters' shared parts as counted */
	u64 rest[NR_MM_COUNTERS];	      /* cells: see parts.bpf.h; 0 while there is none */
};

enum { MM_DROPPED = 1U << 31 /* its memory is not counted any more */ };

/* Mappable, and so page-aligned: the cache lines above are kept. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct mm_rss);
} mms __weak SEC(".maps");

QUEUE_OF_SLOTS free_mms __weak SEC(".maps");

/* The address of an mm -> its slot, for mms that share a bucket. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, u64);
	__type(value, u32);
} mm_slots __weak SEC(".maps");

enum { MM_BUCKET_BITS = 13 };

/* Each bucket: how many counted mms it has (high half), and the slot of the first (low half). */
extern u64 mm_buckets[1 << MM_BUCKET_BITS] __attribute__((aligned(64)));

/*
 * Returns the bucket of an address, by its low half. The verifier refuses arithmetic on a pointer,
 * but it lets us copy half of one, and takes that for a number.
 */
static __always_inline u64 *bucket_of(u64 key)
{
	u32 low;

	asm volatile("%[low] = %[key]" : [low] "=w"(low) : [key] "w"((u32)key));
	return &mm_buckets[low * 0x9e3779b1U >> (32 - MM_BUCKET_BITS)];
}

static __noinline struct mm_rss *find_in_shared_bucket(u64 key)
{
	u32 *slot = bpf_map_lookup_elem(&mm_slots, &key);
	struct mm_rss *m = slot ? bpf_map_lookup_elem(&mms, slot) : NULL;

	return m && m->key == key ? m : NULL;
}

/* Returns NULL if that mm is not counted. */
outlined struct mm_rss *find_mm(u64 key)
{
	u64 bucket = *(volatile u64 *)bucket_of(key);
	struct mm_rss *m;
	u32 slot = bucket;

	if (!bucket)
		return NULL;
	m = bpf_map_lookup_elem(&mms, &slot);
	if (m && m->key == key)
		return m;
	return find_in_shared_bucket(key);
}

static __always_inline bool is_empty(const struct mm_rss *m)
{
	return !pages_of(m->rss);
}

/*
 * Returns the pages that others can have only from a fork: anonymous ones, also in swap. (Pages of
 * shared memory and of files come to a process in other ways, too.)
 */
static __always_inline u64 private_pages(const struct mm_rss *m)
{
	return not_negative(pages_of(m->rss) - pages_of(m->file) - pages_of(m->shmem) +
			    pages_of(m->swap));
}

/* Returns the memory of a process, or NULL if it has none of its own that is counted. */
outlined struct mm_rss *memory_of(const struct proc *proc)
{
	u32 slot = proc->mm_slot;
	struct mm_rss *m = bpf_map_lookup_elem(&mms, &slot);

	return m && m->key && m->key == proc->mm ? m : NULL;
}

/* Counts the mm at an address for a job from now on, from 0 pages. Returns 0 and its *slot. */
int claim_mm(u64 key, u32 job, u32 *slot);

/* Returns the hugetlb memory of a process, in pages of the usual size. */
u64 hugetlb_of(struct proc *proc);

/* Forgets the mm at an address, unless that has been done, and takes what it has from its tree. */
int drop_mm(struct mm_rss *m, u64 key);

/* Gives back the slot of an mm that was dropped, and its blocks. */
int give_back(struct mm_rss *m);

/* Counts what an mm has, and will have, for another job. */
int move_mm(struct mm_rss *m, u32 job);

#endif
